"""Commands on the host."""

from __future__ import annotations

import re
import shutil
import subprocess

from torture.errors import DeadlineExceeded, HarnessError

_OUTPUT_MAX = 3000


def run_host(*argv: str, deadline_s: float = 30, hint: str = "") -> str:
    """The output of a command of the host; raises `HarnessError` when it is missing or fails."""
    if shutil.which(argv[0]) is None:
        raise HarnessError(f"{argv[0]} is not installed", hint="tools/run --setup-only")
    try:
        completed = subprocess.run(
            argv, capture_output=True, text=True, timeout=deadline_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineExceeded(
            f"{' '.join(argv)} did not end within {deadline_s:g} s", hint=hint
        ) from error
    if completed.returncode != 0:
        output = (completed.stderr or completed.stdout).strip()[-_OUTPUT_MAX:]
        raise HarnessError(f"{' '.join(argv)} failed: {output}", hint=hint)
    return completed.stdout


def version_of(*argv: str) -> str:
    """The first version that a command prints; raises `HarnessError` as `run_host` does."""
    found = re.search(r"\d+(\.\d+)+", run_host(*argv))
    return found.group() if found else "unknown"

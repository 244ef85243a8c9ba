"""Which processes work in a scratch directory: how leftovers are found."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]


def working_in(*directories: Path) -> dict[int, str]:
    """Process id to command line, of every process whose command line names one of the folders."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if any(str(directory) in words for directory in directories) and state != "Z":
                found[int(process.name)] = words
    return found


def start_run(
    *arguments: str,
    scratch: Path,
    results: Path,
    log: Path,
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """`pytest suites/powercut` as a user starts it, in the background, its output in `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [
                sys.executable, "-m", "pytest", "suites/powercut", "-p", "no:cacheprovider",
                "--scratch", str(scratch), "--results", str(results), *arguments,
            ],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=None if environment is None else os.environ | environment,
        )  # fmt: skip

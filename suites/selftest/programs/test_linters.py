"""The linters are tests. Each speaks for the whole project, as typing them here would: see its output."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from torture.checkout import CHECKOUT

DEADLINE_S = 240
"""For a cold mypy on a busy machine; with its cache it needs two seconds."""


def lint(tool: str, *arguments: str) -> None:
    """Fails with everything the tool said. Skips when it is not installed, but never in CI."""
    if importlib.util.find_spec(tool) is None and "CI" not in os.environ:
        pytest.skip(f"{tool} is not installed; next: tools/run --setup-only")
    # a suite that colours or wraps its own output must not do so with the linters'
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        again = " ".join([tool, *arguments])
        pytest.fail(f"{done.stdout}{done.stderr}again: {again}", pytrace=False)


def tools() -> list[str]:
    """Every tool, so that none can be forgotten in mypy's own list."""
    return [f"tools/{path.name}" for path in sorted((CHECKOUT / "tools").iterdir())]


@pytest.mark.timeout(DEADLINE_S + 10)
def test_mypy() -> None:
    lint("mypy", "--strict", "torture", "fixtures", "suites", "vmimages", *tools())


def test_ruff_check() -> None:
    lint("ruff", "check", ".")


def test_ruff_format() -> None:
    lint("ruff", "format", "--check", ".")

"""The processes in a run's sandboxes: how leftovers are found, and distinguished from others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from torture.checkout import CHECKOUT


def children_of(pid: int) -> list[int]:
    """Child processes of every thread of a process; none when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += (int(child) for child in (task / "children").read_text().split())
    return found


def descendants_of(pid: int) -> list[int]:
    """Children, their children, and so on."""
    found = children_of(pid)
    for child in tuple(found):
        found += descendants_of(child)
    return found


def sandboxes_of(pid: int) -> set[str]:
    """The process namespaces below a run that are not ours."""
    ours = _sandbox_of(os.getpid())
    return {
        sandbox
        for child in descendants_of(pid)
        if (sandbox := _sandbox_of(child)) not in ("", ours)
    }


def commands_in(sandboxes: set[str]) -> dict[int, str]:
    """Process id to program, of all that runs in these process namespaces.

    A zombie does not count. In a container the first process may be one that never reaps.
    """
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _sandbox_of(int(process.name)) in sandboxes:
            with contextlib.suppress(OSError):
                program, state = _program_and_state((process / "stat").read_text())
                if state not in "ZX":
                    found[int(process.name)] = program
    return found


def _program_and_state(stat: str) -> tuple[str, str]:
    """Of a line of proc_pid_stat(5); a program's name may hold anything."""
    name, rest = stat.split("(", 1)[1].rsplit(")", 1)
    return name, rest.split()[0]


def _sandbox_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def start_run(*arguments: str, scratch: Path, results: Path, log: Path) -> subprocess.Popen[bytes]:
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
        )  # fmt: skip

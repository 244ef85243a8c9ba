"""The processes in a run's sandboxes: how leftovers are found, and distinguished from others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torture.files import CHECKOUT


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """A namespace of processes. It ends with its first process, and so does all that is in it.

    The kernel gives the number of one that has ended to the next one (Linux `fs/proc/generic.c`,
    `proc_alloc_inum`). Another test's may begin in that moment.
    """

    namespace: str
    first_pid: int

    @property
    def is_there(self) -> bool:
        """Whether its first process still has it."""
        return _namespace_of(self.first_pid) == self.namespace


def sandboxes_of(pid: int) -> set[Sandbox]:
    """The sandboxes below a run that are not ours."""
    ours = _namespace_of(os.getpid())
    return {
        Sandbox(namespace=namespace, first_pid=child)
        for child in descendants_of(pid)
        if (namespace := _namespace_of(child)) not in ("", ours) and _is_first(child)
    }


def commands_in(sandboxes: set[Sandbox]) -> dict[int, str]:
    """Process id to program, of all that runs in these sandboxes.

    A zombie does not count. In a container the first process may be one that never reaps.
    """
    namespaces = {sandbox.namespace for sandbox in sandboxes if sandbox.is_there}
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _namespace_of(int(process.name)) in namespaces:
            with contextlib.suppress(OSError):
                program, state = _program_and_state((process / "stat").read_text())
                if state not in "ZX":
                    found[int(process.name)] = program
    return found


def open_files_of(pid: int) -> set[Path]:
    """The files that a process has open; none when it is gone."""
    found: set[Path] = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(descriptor.readlink())
    return found


def _is_first(pid: int) -> bool:
    """Whether the process has the number 1 in its own namespace (proc_pid_status(5), NSpid)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


def _program_and_state(stat: str) -> tuple[str, str]:
    """Of a line of proc_pid_stat(5); a program's name may hold anything."""
    name, rest = stat.split("(", 1)[1].rsplit(")", 1)
    return name, rest.split()[0]


def _namespace_of(pid: int) -> str:
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

"""The client that checks the crash states: one machine serves many trials while it stays healthy.

Under emulation a resumed machine translates all its code anew. Its first mount, read and check run
at a third of the speed of the second ones. So a client whose disk was sound is kept for the next
trial. It caches nothing of the earlier disk: that disk was unplugged, and the kernel's cached
blocks went with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torture.errors import HarnessError
from torture.machines.lab.machine import Machine

_TRIALS_MAX = 20
"""After this number a new one comes, so that nothing adds up in its kernel."""
_CLEAR_DEADLINE_S = 20


class Checkers:
    """At most one client that is kept; `start` brings up a new one, with its console in that file."""

    def __init__(self, *, start: Callable[[Path], Machine]) -> None:
        self._start = start
        self._kept: Machine | None = None
        self._trials = 0

    def take(self, *, console_log: Path) -> Machine:
        """Give a client without a disk to the caller: the kept one if it still answers, or a new one."""
        machine, self._kept = self._kept, None
        if machine is not None and self._is_reusable(machine, console_log):
            return machine
        self._trials = 0
        return self._start(console_log)

    def keep(self, machine: Machine) -> None:
        """Take back a client whose disks are unplugged and whose trial had no unusual event."""
        self._trials += 1
        if self._trials >= _TRIALS_MAX:
            machine.kill()
        else:
            self._kept = machine

    def end(self) -> None:
        """End the kept client."""
        if self._kept is not None:
            self._kept.kill()
            self._kept = None

    def _is_reusable(self, machine: Machine, console_log: Path) -> bool:
        """Whether the kept client answers and its logs can be cleared; otherwise it is ended."""
        try:
            machine.move_console(console_log)
            machine.must("dmesg", "--clear", deadline_s=_CLEAR_DEADLINE_S)
        except HarnessError:
            machine.kill()
            return False
        return True

"""The client that checks what a cut left: one machine for many trials, while nothing befalls it.

Under emulation a machine that is resumed translates all its code anew, and mounts, reads and checks at
a third of the speed it has the second time. So a client whose disk was sound is kept for the next trial.
It has cached nothing of that one's disk: its own was unplugged, and with it went what its kernel had
read of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torture.errors import HarnessError
from torture.machines.lab.machine import Machine

_TRIALS_MAX = 20
"""Then a new one comes, so that nothing adds up in its kernel."""
_CLEAR_DEADLINE_S = 20


class Checkers:
    """At most one client that is kept; `start` brings up a new one, which writes its console there."""

    def __init__(self, *, start: Callable[[Path], Machine]) -> None:
        self._start = start
        self._kept: Machine | None = None
        self._trials = 0

    def take(self, *, console_log: Path) -> Machine:
        """A client without a disk, the kept one if it still answers; the caller's from now on.

        Its kernel's log and its console begin with this. Raises `HarnessError` when none comes up.
        """
        machine, self._kept = self._kept, None
        if machine is not None and self._is_like_new(machine, console_log):
            return machine
        self._trials = 0
        return self._start(console_log)

    def keep(self, machine: Machine) -> None:
        """Take back a client whose disks are unplugged, of which nothing remarkable was seen."""
        self._trials += 1
        if self._trials >= _TRIALS_MAX:
            machine.kill()
        else:
            self._kept = machine

    def end(self) -> None:
        """Keep none any more."""
        if self._kept is not None:
            self._kept.kill()
            self._kept = None

    def _is_like_new(self, machine: Machine, console_log: Path) -> bool:
        """Whether it answers and forgets what it said; one that does not is ended."""
        try:
            machine.write_console_to(console_log)
            machine.must("dmesg", "--clear", deadline_s=_CLEAR_DEADLINE_S)
        except HarnessError:
            machine.kill()
            return False
        return True

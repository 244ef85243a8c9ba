"""A load that acknowledges nothing: it runs beside the ledger, and a file makes it stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torture.choices.workloads.protocol import Command, Guest, Surroundings, Workload
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.facts.evidence.completed_command import Completed

_STOP_DEADLINE_S = 20
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside(Workload):
    """The common part of all workloads that keep a filesystem busy beside the ledger."""

    beside: tuple[str, ...] = ("ledger",)
    prints_at_end: int = 1


class LoadBeside:
    """The load runs in one client until the file `stop` is there, or it finds something wrong."""

    begun = 0
    acknowledged = 0
    is_over = True
    """It never acknowledges anything."""

    def __init__(self, *, name: str, surroundings: Surroundings, argv: Command, stop: str) -> None:
        self._guest: Guest = surroundings.guest
        self._keep = surroundings.keep
        self._name = name
        self._argv = argv
        self._stop = stop
        self._pid = 0
        self._ended: Completed | None = None

    def begin(self) -> None:
        """Make it run from now on."""
        self._pid = self._guest.start(self._argv)

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when it ended; not when it found something wrong: that is evidence."""
        if self._ended is not None or (done := self._guest.poll(self._pid, self._argv)) is None:
            return
        self._take(done)
        if not self._is_evidence(done):
            raise HarnessError(f"{self._name} ended too early: {done.exit_code}: {done.stderr}")

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true; False when the deadline passed first."""
        return wait_until_true(reached, deadline_s=deadline_s, poll_s=_POLL_S)

    def take_ending(self) -> None:
        """Keep its output, if it ended by itself."""
        if self._ended is None and (done := self._guest.poll(self._pid, self._argv)) is not None:
            self._take(done)

    def finish(self, *, deadline_s: float) -> None:
        """Make it end after its work under way."""
        if self._ended is not None:
            return
        stop = ("touch", self._stop)
        self._guest.finish(self._guest.start(stop), stop, deadline_s=_STOP_DEADLINE_S)
        self._take(self._guest.finish(self._pid, self._argv, deadline_s=deadline_s))

    def _is_evidence(self, done: Completed) -> bool:
        """Whether it ended because it had found something wrong."""
        return False

    def _take(self, done: Completed) -> None:
        self._ended = done
        self._keep(done)

"""Where in ZFS's write path a cut fell, told from the log and not from what was planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from torture.audit.coverage import Coverage
from torture.audit.roles import Role
from torture.recording.events import Event, Kind


class Phase(StrEnum):
    """What the disks were at; of several the one nearest to the end of a transaction group."""

    UBERBLOCK_WRITTEN = "uberblock-written"
    """An uberblock is under way or written, and no flush covers it yet."""
    BEFORE_UBERBLOCK = "before-uberblock"
    """All of a transaction group is covered, or its flush is under way; its uberblock is not written."""
    TXG_WRITTEN = "txg-written"
    """Data or metadata of a transaction group is under way or written, and not covered."""
    ZIL_WRITTEN = "zil-written"
    """A block of the intent log is under way or written, and not covered."""
    ZIL_FLUSHED = "zil-flushed"
    """A block of the intent log is covered, and the client has not been heard of since."""
    IDLE = "idle"
    """Nothing that a cut could take from the disks."""


@dataclass(kw_only=True)
class PhaseTracker:
    """Follows a log; `phase` is that of a cut with the last event heard."""

    writes: dict[Role, Coverage]
    _is_before_uberblock: bool = False
    _flushes_of_txg: set[int] = field(default_factory=set)
    """Under way, and submitted when data was written and not covered."""
    _last_mark: int = -1

    def hear(self, event: Event, *, role: Role | None = None) -> None:
        """One event, after `writes` has heard it; `role` is a write's."""
        match event.kind:
            case Kind.MARK:
                self._last_mark = event.seq
            case Kind.WRITE_SUBMIT if role in (Role.UBERBLOCK, Role.DATA):
                self._is_before_uberblock = False
            case Kind.FLUSH_SUBMIT if self.writes[Role.DATA].uncovered:
                self._flushes_of_txg.add(event.seq)
            case Kind.FLUSH_COMPLETE if event.reference in self._flushes_of_txg:
                self._flushes_of_txg.remove(event.reference)
                self._is_before_uberblock = not self.writes[Role.DATA].uncovered

    @property
    def phase(self) -> Phase:
        """Where a cut with the last event heard falls."""
        if self.writes[Role.UBERBLOCK].uncovered:
            return Phase.UBERBLOCK_WRITTEN
        if self._is_before_uberblock:
            return Phase.BEFORE_UBERBLOCK
        if self.writes[Role.DATA].uncovered:
            return Phase.BEFORE_UBERBLOCK if self._flushes_of_txg else Phase.TXG_WRITTEN
        if self.writes[Role.ZIL].uncovered:
            return Phase.ZIL_WRITTEN
        if self.writes[Role.ZIL].latest_covered_at > self._last_mark:
            return Phase.ZIL_FLUSHED
        return Phase.IDLE

"""Where in ZFS's write path a cut fell, told from the log and not from what was planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from torture.audit.coverage import Coverage
from torture.recording.events import Event, Kind
from torture.recording.roles import OF_A_TXG, Role


class Phase(StrEnum):
    """What the disks were at; of several the one nearest to the end of a transaction group."""

    UBERBLOCK_WRITTEN = "uberblock-written"
    """An uberblock is under way or written, and no flush covers it yet."""
    LABEL_WRITTEN = "label-written"
    """The same of a label."""
    BEFORE_UBERBLOCK = "before-uberblock"
    """All of a transaction group is covered, or its flush is under way; its uberblock is not written."""
    METADATA_WRITTEN = "metadata-written"
    """Metadata of a transaction group, which come behind its data, are under way or not covered."""
    TXG_WRITTEN = "txg-written"
    """Of a transaction group only data are under way or written, and not covered."""
    ZIL_REUSED = "zil-reused"
    """As `zil-written`, in a place where another block of the intent log was before."""
    ZIL_SEVERAL = "zil-several"
    """As `zil-written`, and there are several."""
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
    """Under way, and submitted when data or metadata was written and not covered."""
    _last_mark: int = -1
    _zil_places: set[tuple[int | None, int]] = field(default_factory=set)
    """Disks and offsets of the intent log's blocks."""
    _reusing: set[int] = field(default_factory=set)
    """Submissions of blocks of the intent log to one of these."""

    def hear(self, event: Event, *, role: Role | None = None) -> None:
        """One event, after `writes` has heard it; `role` is a write's."""
        match event.kind:
            case Kind.MARK:
                self._last_mark = event.seq
            case Kind.WRITE_SUBMIT:
                self._hear_write(event, role)
            case Kind.FLUSH_SUBMIT if self._is_txg_uncovered:
                self._flushes_of_txg.add(event.seq)
            case Kind.FLUSH_COMPLETE if event.reference in self._flushes_of_txg:
                self._flushes_of_txg.remove(event.reference)
                self._is_before_uberblock = not self._is_txg_uncovered

    def _hear_write(self, event: Event, role: Role | None) -> None:
        if role is Role.UBERBLOCK or role in OF_A_TXG:
            self._is_before_uberblock = False
        if role is Role.ZIL:
            place = (event.disk, event.offset)
            if place in self._zil_places:
                self._reusing.add(event.seq)
            self._zil_places.add(place)

    @property
    def _is_txg_uncovered(self) -> bool:
        return any(self.writes[role].uncovered for role in OF_A_TXG)

    @property
    def phase(self) -> Phase:
        """Where a cut with the last event heard falls."""
        if self.writes[Role.UBERBLOCK].uncovered:
            return Phase.UBERBLOCK_WRITTEN
        if self.writes[Role.LABEL].uncovered:
            return Phase.LABEL_WRITTEN
        if self._is_before_uberblock or (self._is_txg_uncovered and self._flushes_of_txg):
            return Phase.BEFORE_UBERBLOCK
        if self.writes[Role.METADATA].uncovered:
            return Phase.METADATA_WRITTEN
        if self.writes[Role.DATA].uncovered:
            return Phase.TXG_WRITTEN
        return self._zil_phase(self.writes[Role.ZIL])

    def _zil_phase(self, zil: Coverage) -> Phase:
        uncovered = zil.uncovered
        if self._reusing.intersection(uncovered):
            return Phase.ZIL_REUSED
        if uncovered:
            return Phase.ZIL_SEVERAL if len(uncovered) > 1 else Phase.ZIL_WRITTEN
        return Phase.ZIL_FLUSHED if zil.latest_covered_at > self._last_mark else Phase.IDLE

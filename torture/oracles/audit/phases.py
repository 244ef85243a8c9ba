"""The phase of ZFS's write path in which a cut fell, derived from the recording and not from the plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torture.facts.evidence.cut_document import Phase
from torture.facts.recording.events import Event, Kind
from torture.facts.recording.roles import TXG_ROLES, Role
from torture.oracles.audit.commits import Coverage
from torture.oracles.audit.extents import sectors_of

_LATELY_NS = 2_500_000


@dataclass(kw_only=True)
class PhaseTracker:
    """Follows a recording; `phase` is that of a cut right after the last event."""

    writes: dict[Role, Coverage]
    pointed: Coverage
    """The coverage of data that the intent log points to."""
    length_shows_metadata: bool
    """Whether a write's length distinguishes metadata from data."""
    acknowledged_ns: int | None = None
    """When the last operation was acknowledged, by the recording's clock."""
    _now_ns: int = 0
    _is_before_uberblock: bool = False
    _flushes_of_txg: set[int] = field(default_factory=set)
    """Flushes under way that belong to the transaction group.

    They were submitted while data or metadata was uncovered, and no such write followed. A flush with
    more writes of the group behind it is the intent log's.
    """
    _last_mark: int = -1
    _trims: Coverage = field(default_factory=Coverage)
    _log_sectors: dict[int | None, set[int]] = field(default_factory=dict)
    """By disk, the sectors that a block of the intent log wrote last."""
    _disk_of: dict[int, int | None] = field(default_factory=dict)
    """The disk of each block of the intent log, by submission."""
    _reusing: set[int] = field(default_factory=set)
    """The log blocks that were written over an older one, by submission."""

    def hear(self, event: Event, *, role: Role | None = None) -> None:
        """Note one event, after `writes` has it; `role` is that of a write."""
        self._trims.hear(event)
        self._now_ns = event.time_ns
        match event.kind:
            case Kind.MARK:
                self._last_mark = event.seq
            case Kind.WRITE_SUBMIT:
                self._hear_write(event, role)
            case Kind.TRIM_SUBMIT:
                self._trims.submit(event)
                self._forget_log(event)
            case Kind.ZERO_SUBMIT:
                self._forget_log(event)
            case Kind.FLUSH_SUBMIT if self._is_txg_uncovered:
                self._flushes_of_txg.add(event.seq)
            case Kind.FLUSH_COMPLETE if event.reference in self._flushes_of_txg:
                self._flushes_of_txg.remove(event.reference)
                self._is_before_uberblock = not self._is_txg_uncovered

    def _hear_write(self, event: Event, role: Role | None) -> None:
        if role is Role.UBERBLOCK or role in TXG_ROLES:
            self._is_before_uberblock = False
            self._flushes_of_txg.clear()
        if role is Role.ZIL:
            older = self._log_sectors.setdefault(event.disk, set())
            sectors = sectors_of(event.offset, event.length)
            if not older.isdisjoint(sectors):
                self._reusing.add(event.seq)
            older.update(sectors)
            self._disk_of[event.seq] = event.disk
        else:
            self._forget_log(event)

    def _forget_log(self, event: Event) -> None:
        """Forget log blocks that this write or trim replaces."""
        sectors = sectors_of(event.offset, event.length)
        if older := self._log_sectors.get(event.disk):
            if len(sectors) < len(older):
                older.difference_update(sectors)
            else:  # a trim may cover more than was ever written
                older -= {sector for sector in older if sector in sectors}

    @property
    def _is_txg_uncovered(self) -> bool:
        return any(self.writes[role].uncovered for role in TXG_ROLES)

    @property
    def phase(self) -> Phase:
        """The phase of a cut right after the last event."""
        if self.writes[Role.UBERBLOCK].uncovered:
            return Phase.UBERBLOCK_WRITTEN
        if self.writes[Role.LABEL].uncovered:
            return Phase.LABEL_WRITTEN
        if self._trims.uncovered:
            return Phase.TRIMMING
        if self._is_before_uberblock or (self._is_txg_uncovered and self._flushes_of_txg):
            return Phase.BEFORE_UBERBLOCK
        if self.writes[Role.METADATA].uncovered and self.length_shows_metadata:
            return Phase.METADATA_WRITTEN
        if self._is_txg_uncovered:
            return Phase.TXG_WRITTEN
        if self.acknowledged_ns is not None and self._now_ns - self.acknowledged_ns <= _LATELY_NS:
            return Phase.ACKNOWLEDGED
        return self._zil_phase(self.writes[Role.ZIL])

    def _zil_phase(self, zil: Coverage) -> Phase:
        uncovered = zil.uncovered
        if self._reusing.intersection(uncovered):
            return Phase.ZIL_REUSED
        if not uncovered and self.pointed.uncovered:
            return Phase.ZIL_WRITTEN
        if uncovered:
            by_disk = Counter(self._disk_of[submission] for submission in uncovered)
            return Phase.ZIL_SEVERAL if max(by_disk.values()) > 1 else Phase.ZIL_WRITTEN
        return Phase.ZIL_FLUSHED if zil.latest_covered_at > self._last_mark else Phase.IDLE

"""When ZFS commits: how much a cut may roll back, and whether ZFS commits in time.

Which writes of a role a flush covers: native/README.md's rule, implemented separately.

A trim counts as a write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torture.facts.evidence.cut_document import Phase
from torture.facts.recording.events import Event, Kind
from torture.facts.recording.intent_log import TXG_ROLES, Role
from torture.oracles.audit.extents import sectors_of


@dataclass(kw_only=True)
class Coverage:
    """Which of some writes are under way, completed and covered, on all disks.

    All are numbers of events, and -1 before there is one. `latest` is the highest covered submission.
    `latest_covered_at` is the last event that covered one. `covered_at` has this event for each
    submission.
    """

    latest: int = -1
    latest_covered_at: int = -1
    covered_at: dict[int, int] = field(default_factory=dict)
    _under_way: dict[int, Event] = field(default_factory=dict)
    _completed: dict[int, set[int]] = field(default_factory=dict)
    """By disk, the submissions that are completed and not covered."""
    _flushes: dict[int, frozenset[int]] = field(default_factory=dict)
    """By a flush's submission, the writes that it covers once it completes."""

    @property
    def uncovered(self) -> tuple[int, ...]:
        """The submissions that a cut could lose now."""
        completed = (submission for done in self._completed.values() for submission in done)
        return tuple(sorted((*self._under_way, *completed)))

    def covered_since(self, time_ns: int, events: Sequence[Event]) -> Iterator[int]:
        """The submissions that were covered after this time of the recording."""
        for submission, at in reversed(self.covered_at.items()):
            if events[at].time_ns <= time_ns:
                return
            yield submission

    def submit(self, event: Event) -> None:
        """Note the submission of a write."""
        self._under_way[event.seq] = event

    def forget(self, disk: int) -> None:
        """Drop the writes of a disk that has left the pool: nothing depends on them."""
        self._under_way = {seq: one for seq, one in self._under_way.items() if one.disk != disk}
        self._completed.pop(disk, None)

    def hear(self, event: Event) -> None:
        """Note any event other than a submission of a write."""
        disk = -1 if event.disk is None else event.disk
        match event.kind:
            case Kind.WRITE_COMPLETE | Kind.TRIM_COMPLETE:
                self._complete(event, disk)
            case Kind.FLUSH_SUBMIT:
                self._flushes[event.seq] = frozenset(self._completed.get(disk, ()))
            case Kind.FLUSH_COMPLETE:
                covered = self._flushes.pop(event.reference, frozenset())
                if not event.error:
                    self._cover(disk, covered, at=event.seq)

    def _complete(self, event: Event, disk: int) -> None:
        submitted = self._under_way.pop(event.reference, None)
        if submitted is None or event.error:
            return
        self._completed.setdefault(disk, set()).add(submitted.seq)
        if submitted.fua:
            self._cover(disk, frozenset({submitted.seq}), at=event.seq)

    def _cover(self, disk: int, submissions: frozenset[int], *, at: int) -> None:
        completed = self._completed.get(disk, set())
        for submission in submissions & completed:
            completed.remove(submission)
            self.latest = max(self.latest, submission)
            self.latest_covered_at = at
            self.covered_at[submission] = at


@dataclass(kw_only=True)
class Groups:
    """Follows a recording.

    `only_groups_write`: only transaction groups write data or metadata, and no resilver. Then a
    committed group vouches for everything before its first write, otherwise before its uberblock.
    """

    only_groups_write: bool
    txgs: set[int] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    """The first write that surely belongs to a group, by the submission of its uberblock."""
    _is_begun: bool = True
    """True at first: the recording may begin in the middle of a group."""
    _first: int | None = None
    _first_of: dict[int, int | None] = field(default_factory=dict)

    def hear_write(self, event: Event) -> bool:
        """Note a write that surely belongs to the current group; returns whether it is the first one."""
        if self._is_begun:
            return False
        self._is_begun, self._first = True, event.seq
        return True

    def hear_uberblock(self, event: Event, txg: int) -> bool:
        """Note an uberblock; returns whether it is the first copy of its group."""
        is_new = txg not in self.txgs
        if is_new:
            self.txgs.add(txg)
            self._first_of[txg] = self._first
            self._is_begun, self._first = False, None
        first = self._first_of[txg]
        if first is not None and self.only_groups_write:
            self.begun[event.seq] = first
        return is_new

    def begun_by(self, uberblock: int) -> int:
        """Writes submitted before this event are in this uberblock's group, or in an older one."""
        return self.begun.get(uberblock, uberblock)


LATE_MS = 8_000
"""How long after an acknowledgement the first write of a transaction group may come.

ZFS begins to write a group `zfs_txg_timeout`, 5 s, after it opened it (zfs(4)). The rest allows for a
slow guest.
"""

UNDER_WAY_MS = 22_000
"""How much later it may come while the group before is under way, with metadata and no uberblock yet.

ZFS writes one group at a time (OpenZFS `module/zfs/txg.c`, `txg_sync_thread`). Under emulation, on a host
with other work, that took 12 s once.
"""

_NS_PER_MS = 1_000_000
_GAP_MS_MAX = 500
"""A longer silence counts only this much: the NAS was stopped then, so it could neither commit nor
acknowledge.
"""


@dataclass(kw_only=True)
class Commits:
    """Follows a recording. `uberblocks` is the coverage of the uberblocks."""

    uberblocks: Coverage
    late_ms: int = LATE_MS
    """`LATE_MS`, or longer where ZFS is set to wait longer."""
    _begun_ns: int | None = None
    """When the first write of the current transaction group was submitted."""
    _begun_ns_of: dict[int, int] = field(default_factory=dict)
    """When each transaction group began to be written, by the submission of its uberblock."""
    _quiet_ns: int = 0
    """How long an acknowledged operation has waited without any write of a transaction group."""
    _is_counting: bool = False
    _is_under_way: bool = False
    """Whether metadata of a group were written since the last uberblock."""
    _last_ns: int = 0

    def hear(self, event: Event) -> bool:
        """Advance the clock, before any other method sees the event; returns whether a commit is overdue.

        A delay is reported once.
        """
        if self._is_counting:
            self._quiet_ns += min(event.time_ns - self._last_ns, _GAP_MS_MAX * _NS_PER_MS)
        self._last_ns = event.time_ns
        late_ms = self.late_ms + (UNDER_WAY_MS if self._is_under_way else 0)
        is_late = self._quiet_ns > late_ms * _NS_PER_MS
        if is_late:
            self._stop_counting()
        return is_late

    def hear_write_of_txg(self, event: Event, *, is_metadata: bool) -> None:
        """Note data or metadata of a transaction group."""
        self._is_under_way |= is_metadata
        if self._begun_ns is None:
            self._begun_ns = event.time_ns
        self._stop_counting()

    def hear_uberblock(self, event: Event, *, is_copy: bool) -> None:
        """Note an uberblock; a copy belongs to the same transaction group as the last one."""
        self._is_under_way = False
        begun_ns = self._begun_ns
        if is_copy and self._begun_ns_of:
            begun_ns = next(reversed(self._begun_ns_of.values()))
        self._begun_ns_of[event.seq] = event.time_ns if begun_ns is None else begun_ns
        if not is_copy:
            self._begun_ns = None
        self._stop_counting()

    def hear_acknowledgement(self) -> None:
        """Note an acknowledged durable operation: its data are in the pool and wait for a commit."""
        self._is_counting = True

    def _stop_counting(self) -> None:
        self._is_counting = False
        self._quiet_ns = 0

    def uncommitted_ms(self, now: Event) -> int | None:
        """How long before this event the last committed transaction group began to be written.

        A group is committed once a flush covers its uberblock. None where the recording has no
        committed group.
        """
        begun_ns = self._begun_ns_of.get(self.uberblocks.latest)
        return None if begun_ns is None else round((now.time_ns - begun_ns) / _NS_PER_MS)


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

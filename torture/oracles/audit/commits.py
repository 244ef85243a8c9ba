"""When ZFS commits: how much a cut may roll back, and whether ZFS commits in time."""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.recording.events import Event
from torture.oracles.audit.coverage import Coverage


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
    _last_ns: int = 0

    def hear(self, event: Event) -> bool:
        """Advance the clock, before any other method sees the event; returns whether a commit is overdue.

        A delay is reported once.
        """
        if self._is_counting:
            self._quiet_ns += min(event.time_ns - self._last_ns, _GAP_MS_MAX * _NS_PER_MS)
        self._last_ns = event.time_ns
        is_late = self._quiet_ns > self.late_ms * _NS_PER_MS
        if is_late:
            self._stop_counting()
        return is_late

    def hear_write_of_txg(self, event: Event) -> None:
        """Note data or metadata of a transaction group."""
        if self._begun_ns is None:
            self._begun_ns = event.time_ns
        self._stop_counting()

    def hear_uberblock(self, event: Event, *, is_copy: bool) -> None:
        """Note an uberblock; a copy belongs to the same transaction group as the last one."""
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

"""When ZFS committed: how much a cut may take back, and whether it commits at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.recording.events import Event
from torture.oracles.audit.coverage import Coverage

LATE_MS = 8_000
"""How long the log may go on, once something was acknowledged, without a write of a transaction group:
one begins to be written `zfs_txg_timeout` after it was opened, 5 s (zfs(4)), and the guest is slow."""

_NS_PER_MS = 1_000_000
_GAP_MS_MAX = 500
"""Of a longer silence only so much counts: nobody was there to commit, or to acknowledge."""


@dataclass(kw_only=True)
class Commits:
    """Follows a log. `uberblocks` are the writes of these."""

    uberblocks: Coverage
    _begun_ns: int | None = None
    """When the first write of the transaction group under way was submitted."""
    _begun_ns_of: dict[int, int] = field(default_factory=dict)
    """By an uberblock's submission: when its transaction group began to be written."""
    _quiet_ns: int = 0
    """For how long something acknowledged has been waiting and nothing of a transaction group written."""
    _is_counting: bool = False
    _last_ns: int = 0

    def hear(self, event: Event) -> bool:
        """Any event, before what it is; whether ZFS should have committed by now. Said once."""
        if self._is_counting:
            self._quiet_ns += min(event.time_ns - self._last_ns, _GAP_MS_MAX * _NS_PER_MS)
        self._last_ns = event.time_ns
        is_late = self._quiet_ns > LATE_MS * _NS_PER_MS
        if is_late:
            self._stop_counting()
        return is_late

    def hear_write_of_txg(self, event: Event) -> None:
        """Data or metadata of a transaction group."""
        if self._begun_ns is None:
            self._begun_ns = event.time_ns
        self._stop_counting()

    def hear_uberblock(self, event: Event, *, is_copy: bool) -> None:
        """An uberblock; a copy is of the same transaction group as the last one."""
        begun_ns = self._begun_ns
        if is_copy and self._begun_ns_of:
            begun_ns = next(reversed(self._begun_ns_of.values()))
        self._begun_ns_of[event.seq] = event.time_ns if begun_ns is None else begun_ns
        if not is_copy:
            self._begun_ns = None
        self._stop_counting()

    def hear_acknowledgement(self) -> None:
        """One of a durable operation: what it wrote is in the pool, and waits to be committed."""
        self._is_counting = True

    def _stop_counting(self) -> None:
        self._is_counting = False
        self._quiet_ns = 0

    def uncommitted_ms(self, now: Event) -> int | None:
        """How long before this event the last committed transaction group began to be written.

        None where the log has none. Committed is one with an uberblock that a flush covers.
        """
        begun_ns = self._begun_ns_of.get(self.uberblocks.latest)
        return None if begun_ns is None else round((now.time_ns - begun_ns) / _NS_PER_MS)

"""Checks that trims and zeroes spare labels, uberblocks, and the log blocks that replay needs.

ZFS trims only the free space of a metaslab (OpenZFS `module/zfs/vdev_trim.c`, `vdev_trim_thread` and
`vdev_autotrim_thread`). No metaslab contains a label. A log block becomes free once a group has
committed its records, at the earliest: `zil_sync` frees it (`module/zfs/zil.c`). This does not depend
on any flush, so an uberblock counts as soon as it is submitted. `torture.oracles.audit.extents` checks
trims over data.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from torture.facts.recording.events import Event, RecordedDisk
from torture.facts.recording.intent_log import LogBlock
from torture.oracles.audit.disk_writes import overlap
from torture.oracles.audit.labels import Labels


@dataclass(kw_only=True)
class Trims:
    """Follows a recording; `labels` has the places of a disk's labels."""

    labels: Labels
    _txg: int = 0
    """The highest transaction group with an uberblock."""
    _needed: list[tuple[Event, int]] = field(default_factory=list)
    """Writes of log blocks, each with the group that has to end before one may be freed."""

    def hear_log(self, event: Event, blocks: Collection[LogBlock]) -> None:
        """Note a write with these log blocks; blocks that are split over disks are not judged."""
        if all(block.is_whole for block in blocks):
            txg = min((block.txg for block in blocks), default=0)
            if txg > self._txg:
                self._needed.append((event, txg))

    def hear_uberblock(self, txg: int) -> None:
        """Note the uberblock that ends this group."""
        self._txg = max(self._txg, txg)
        self._needed = [(event, until) for event, until in self._needed if until > self._txg]

    def hits_used_space(self, trim: Event, disk: RecordedDisk) -> bool:
        """Whether a trim, or zeroes, overlap a label, an uberblock or a needed log block."""
        if self.labels.is_touched_by(trim, disk):
            return True
        return any(trim.disk == event.disk and overlap(trim, event) for event, _ in self._needed)

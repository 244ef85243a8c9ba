"""That a trim, or zeroes, spare what is in use: labels, uberblocks, and the log that replay needs.

ZFS trims only what a metaslab can give out (OpenZFS `module/zfs/vdev_trim.c`, `vdev_trim_thread` and
`vdev_autotrim_thread`), and no metaslab has a label in it. A block of the log cannot be given out before
a group has committed its records: `zil_sync` (`module/zfs/zil.c`) frees it then at the earliest. This
rests on no flush: an uberblock counts as soon as it is submitted. Trims over data are the business of
`torture.oracles.audit.extents`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from torture.facts.recording.events import Event, RecordedDisk
from torture.facts.recording.intent_log import LogBlock
from torture.oracles.audit.labels import Labels


@dataclass(kw_only=True)
class Trims:
    """Follows a log; `labels` says where the labels of a disk are."""

    labels: Labels
    _txg: int = 0
    """The highest transaction group that an uberblock ended."""
    _needed: list[tuple[Event, int]] = field(default_factory=list)
    """Writes with blocks of the log, each with the group that has to end before one may be freed."""

    def hear_log(self, event: Event, blocks: Collection[LogBlock]) -> None:
        """A write with these blocks of the log; of blocks that are split over disks nothing is said."""
        if all(block.is_whole for block in blocks):
            txg = min((block.txg for block in blocks), default=0)
            if txg > self._txg:
                self._needed.append((event, txg))

    def hear_uberblock(self, txg: int) -> None:
        """The end of this group."""
        self._txg = max(self._txg, txg)
        self._needed = [(event, until) for event, until in self._needed if until > self._txg]

    def takes(self, trim: Event, disk: RecordedDisk) -> bool:
        """Whether a trim, or zeroes, take something that is in use."""
        if self.labels.is_touched_by(trim, disk):
            return True
        return any(_overlap(trim, event) for event, _ in self._needed)


def _overlap(one: Event, other: Event) -> bool:
    is_apart = one.offset + one.length <= other.offset or other.offset + other.length <= one.offset
    return one.disk == other.disk and not is_apart

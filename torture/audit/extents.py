"""That nothing is overwritten which the last transaction groups wrote: an older one must stay readable.

What a transaction group frees may be written again only after two more were committed (OpenZFS
`module/zfs/metaslab.c`, `TXG_DEFER_SIZE`). Within its own group a block may be written several times
(`zfs_sync_pass_rewrite`, zfs(4)), and the intent log's blocks are freed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torture.recording.events import Event

_SECTOR_BYTES = 512
_KEPT_FOR_GROUPS = 2


@dataclass(kw_only=True)
class Extents:
    """Follows a log: in which transaction group each sector of each disk was written last.

    Where a block of the log is split over disks, parts of it look like data: then nothing is said.
    """

    is_blind: bool = False
    _written_in: dict[tuple[int | None, int], int] = field(default_factory=dict)

    def hear_write(self, event: Event, *, group: int) -> bool:
        """A write of a transaction group, which are counted; whether it took what had to be kept."""
        is_taken = self._takes(event, group=group)
        for sector in sectors_of(event.offset, event.length):
            self._written_in[event.disk, sector] = group
        return is_taken

    def hear_trim(self, event: Event, *, group: int) -> bool:
        """A trim, or zeroes; whether it took what had to be kept."""
        return self._takes(event, group=group)

    def hear_log(self, event: Event) -> None:
        """A block of the intent log."""
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)

    def _takes(self, event: Event, *, group: int) -> bool:
        return not self.is_blind and any(
            0 < group - written_in <= _KEPT_FOR_GROUPS for written_in in self._groups_at(event)
        )

    def _groups_at(self, event: Event) -> Iterator[int]:
        """The groups that wrote what is there. A trim may be of more sectors than were ever written."""
        sectors = sectors_of(event.offset, event.length)
        if len(sectors) < len(self._written_in):
            places = ((event.disk, sector) for sector in sectors)
            yield from (self._written_in[place] for place in places if place in self._written_in)
            return
        for (disk, sector), group in self._written_in.items():
            if disk == event.disk and sector in sectors:
                yield group


def sectors_of(offset_bytes: int, length_bytes: int) -> range:
    """The numbers of the sectors that are touched there, of 512 bytes whatever the disk's own are."""
    end_bytes = offset_bytes + length_bytes
    return range(offset_bytes // _SECTOR_BYTES, -(-end_bytes // _SECTOR_BYTES))

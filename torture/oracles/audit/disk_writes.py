"""Classifies every write of a recording by its content, and finds missing links of the log's chains.

Split blocks are classified by their neighbours as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.recording.intent_log import (
    TXG_ROLES,
    Change,
    LogBlock,
    Role,
    change_in,
    log_blocks_in,
    role_of,
    txg_of,
)

FIRST_BLOCK_BYTES = (1 << 20) + (4 << 20)
"""Where a disk's allocations begin: behind its partition's first MiB, two labels and the boot area
(`include/sys/vdev_impl.h`, `VDEV_LABEL_START_SIZE`).
"""
_ROW_BYTES = 16 << 20
"""At this distance a dRAID has another order of its disks (`module/zfs/vdev_draid.c`,
`VDEV_DRAID_ROWHEIGHT`).
"""
_NEAR_EVENTS = 64
"""The columns of a block are written close together: at most some tens of events apart."""
Chain = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskWrite:
    """One write."""

    event: Event
    role: Role
    txg: int | None
    """The transaction group of an uberblock; None for other writes, and for group 0."""
    log_blocks: tuple[LogBlock, ...]
    """The log blocks in this write.

    A write that merges data with a log block behind them begins like data. It still counts as the
    ZIL's, since the log block is in flight with it.
    """
    change: Change | None
    """The change of the pool's layout that it makes (`torture.facts.recording.intent_log`)."""
    is_mixed: bool = False
    """Whether the write may hold a column of a split log block and other data."""


def disk_writes_in(recording: Recording, *, cut: int, is_split: bool) -> dict[int, DiskWrite]:
    """Every write up to and including event `cut`, by number; raises what `Recording.payload` raises.

    `is_split`: blocks are split over disks, as in a raidz. The columns lie at one offset of each disk,
    or one physical sector further (`module/zfs/vdev_raidz.c`, `vdev_raidz_map_alloc`). A block that
    reaches the end of a dRAID's row continues in the next row, on other disks (`vdev_draid_map_alloc`).
    Only some columns of a log block show its magic. The others would be mistaken for data of a
    transaction group.
    """
    writes = {
        event.seq: _disk_write(event, recording.payload(event))
        for event in recording.events[: cut + 1]
        if event.kind is Kind.WRITE_SUBMIT
    }
    if not is_split:
        return writes
    return _with_columns(writes, sector_bytes=max(disk.physical_sector for disk in recording.disks))


def _disk_write(event: Event, payload: bytes) -> DiskWrite:
    role, log_blocks = role_of(payload), tuple(log_blocks_in(payload))
    return DiskWrite(
        event=event,
        role=Role.ZIL if log_blocks and role in TXG_ROLES else role,
        txg=(txg_of(payload) or None) if role is Role.UBERBLOCK else None,
        log_blocks=log_blocks,
        change=change_in(event.offset, payload),
    )


def _with_columns(writes: dict[int, DiskWrite], *, sector_bytes: int) -> dict[int, DiskWrite]:
    in_order = list(writes.values())
    classified = dict(writes)
    for place, write in enumerate(in_order):
        if write.role is not Role.ZIL:
            continue
        for other in _near(in_order, place):
            number = other.event.seq
            if other.role not in TXG_ROLES:
                continue
            if _is_in_next_row(other.event, of=write.event):
                classified[number] = replace(other, role=Role.ZIL)
            elif other.event.disk == write.event.disk:
                continue
            elif _is_column(other.event, of=write.event, sector_bytes=sector_bytes):
                classified[number] = replace(other, role=Role.ZIL)
            elif overlap(other.event, write.event) and classified[number].role is not Role.ZIL:
                classified[number] = replace(other, is_mixed=True)
    return classified


def _near(in_order: list[DiskWrite], place: int) -> list[DiskWrite]:
    number = in_order[place].event.seq
    around = in_order[max(0, place - _NEAR_EVENTS) : place + _NEAR_EVENTS + 1]
    return [other for other in around if abs(other.event.seq - number) <= _NEAR_EVENTS]


def _is_column(one: Event, *, of: Event, sector_bytes: int) -> bool:
    is_there = abs(one.offset - of.offset) <= sector_bytes
    return is_there and abs(one.length - of.length) <= sector_bytes


def _is_in_next_row(one: Event, *, of: Event) -> bool:
    is_behind = one.offset == of.offset + of.length
    return is_behind and (one.offset - FIRST_BLOCK_BYTES) % _ROW_BYTES == 0


def overlap(one: Event, other: Event) -> bool:
    """Whether two requests have a byte of their disks in common, by its offset."""
    begins = max(one.offset, other.offset)
    return begins < min(one.offset + one.length, other.offset + other.length)


def missing_links(
    writes: Mapping[int, DiskWrite],
    *,
    holding: Iterable[int],
    uncovered: Iterable[int],
    covered: Iterable[int],
    committed_txg: int,
) -> tuple[int, ...]:
    """The `uncovered` submissions that replay needs before it reaches `holding`.

    Each block of the intent log points to the next one of its chain. Replay ends at a missing block.
    It begins behind the blocks whose records are all in a committed transaction group, so these need
    not be there.

    Where a block was never written, the next one of its chain is returned instead: replay does not
    reach it. `committed_txg` is the transaction group of the last covered uberblock. A block that lies
    on several disks is present as soon as one of them has it.
    """
    ends: dict[Chain, int] = {}
    for block in _blocks_of(writes, holding):
        if block.place is not None and block.txg > committed_txg:
            ends[block.place.chain] = max(ends.get(block.place.chain, 0), block.place.number)
    if not ends:
        return ()
    lacking = {
        number: block.place
        for number in uncovered
        for block in _blocks_of(writes, (number,))
        if block.place is not None
        and block.place.number < ends.get(block.place.chain, 0)
        and not 0 < block.txg <= committed_txg
    }
    there = {block.place for block in _blocks_of(writes, covered)} if lacking else set()
    missing = {number for number, place in lacking.items() if place not in there}
    missing.update(_after_gaps(writes, ends, committed_txg=committed_txg))
    return tuple(sorted(missing))


def _after_gaps(
    writes: Mapping[int, DiskWrite], ends: Mapping[Chain, int], *, committed_txg: int
) -> Iterator[int]:
    """The submissions of blocks, up to `ends`, whose predecessors were never written."""
    for chain, end in ends.items():
        submissions: dict[int, int] = {}
        txgs: dict[int, int] = {}
        for submission, block in (
            (at, b) for at, write in writes.items() for b in write.log_blocks
        ):
            if block.place is not None and block.place.chain == chain:
                number = block.place.number
                submissions[number] = submission
                # a raidz's parity may look like the block, without its records
                txgs[number] = max(txgs.get(number, 0), block.txg)
        ascending = sorted(number for number in submissions if number <= end)
        for one, following in pairwise(ascending):
            if following != one + 1 and txgs[one] > committed_txg:
                yield submissions[following]


def _blocks_of(writes: Mapping[int, DiskWrite], numbers: Iterable[int]) -> Iterator[LogBlock]:
    for number in numbers:
        if (write := writes.get(number)) is not None:
            yield from write.log_blocks

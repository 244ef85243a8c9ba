"""Classifies every write of a recording by its content, and split blocks by their neighbours as well."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.recording.intent_log import LogBlock, log_blocks_in
from torture.facts.recording.roles import TXG_ROLES, Role, role_of, txg_of

_SECTOR_BYTES = 512
_NEAR_EVENTS = 64
"""The columns of a block are written close together: at most some tens of events apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskWrite:
    """One write."""

    event: Event
    role: Role
    txg: int | None
    """The transaction group of an uberblock; None for other writes."""
    log_blocks: tuple[LogBlock, ...]
    """The log blocks in this write.

    A write that merges data with a log block behind them begins like data. It still counts as the
    ZIL's, since the log block is in flight with it.
    """
    is_mixed: bool = False
    """Whether the write may hold a column of a split log block and other data."""


def disk_writes_in(recording: Recording, *, cut: int, is_split: bool) -> dict[int, DiskWrite]:
    """Every write up to and including event `cut`, by number; raises what `Recording.payload` raises.

    `is_split`: blocks are split over disks, as in a raidz. The columns lie at one offset of each disk,
    or one sector further (`module/zfs/vdev_raidz.c`, `vdev_raidz_map_alloc`). Only some columns of a
    log block show its magic. The others would be mistaken for data of a transaction group.
    """
    writes = {
        event.seq: _disk_write(event, recording.payload(event))
        for event in recording.events[: cut + 1]
        if event.kind is Kind.WRITE_SUBMIT
    }
    return _with_columns(writes) if is_split else writes


def _disk_write(event: Event, payload: bytes) -> DiskWrite:
    role, log_blocks = role_of(payload), tuple(log_blocks_in(payload))
    return DiskWrite(
        event=event,
        role=Role.ZIL if log_blocks and role in TXG_ROLES else role,
        txg=txg_of(payload) if role is Role.UBERBLOCK else None,
        log_blocks=log_blocks,
    )


def _with_columns(writes: dict[int, DiskWrite]) -> dict[int, DiskWrite]:
    in_order = list(writes.values())
    classified = dict(writes)
    for place, write in enumerate(in_order):
        if write.role is not Role.ZIL:
            continue
        for other in _near(in_order, place):
            number = other.event.seq
            if other.role not in TXG_ROLES or other.event.disk == write.event.disk:
                continue
            if _is_column(other.event, of=write.event):
                classified[number] = replace(other, role=Role.ZIL)
            elif overlap(other.event, write.event) and classified[number].role is not Role.ZIL:
                classified[number] = replace(other, is_mixed=True)
    return classified


def _near(in_order: list[DiskWrite], place: int) -> list[DiskWrite]:
    number = in_order[place].event.seq
    around = in_order[max(0, place - _NEAR_EVENTS) : place + _NEAR_EVENTS + 1]
    return [other for other in around if abs(other.event.seq - number) <= _NEAR_EVENTS]


def _is_column(one: Event, *, of: Event) -> bool:
    is_there = abs(one.offset - of.offset) <= _SECTOR_BYTES
    return is_there and abs(one.length - of.length) <= _SECTOR_BYTES


def overlap(one: Event, other: Event) -> bool:
    """Whether two requests have a byte of their disks in common, by its offset."""
    begins = max(one.offset, other.offset)
    return begins < min(one.offset + one.length, other.offset + other.length)

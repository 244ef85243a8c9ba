"""What every write of a recording is, by its content and, where blocks are split, by its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.recording.intent_log import LogBlock, log_blocks_in
from torture.facts.recording.roles import OF_A_TXG, Role, role_of, txg_of

_SECTOR_BYTES = 512
_NEAR_EVENTS = 64
"""The columns of a block are written beside each other, some tens of events at most apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskWrite:
    """One write."""

    event: Event
    role: Role
    txg: int | None
    """Of an uberblock: the group that it ends."""
    log_blocks: tuple[LogBlock, ...]
    """Data that were merged with one behind them begin like data, and are on their way with it."""
    is_mixed: bool = False
    """Of a block that is split: whether it may hold a part of the log and something else."""


def disk_writes_in(recording: Recording, *, cut: int, is_split: bool) -> dict[int, DiskWrite]:
    """By its number, every write up to and with event `cut`; raises what `Recording.payload` raises.

    `is_split`: a block lies on several disks in parts, as in a raidz, at one place of each or one sector
    further (`module/zfs/vdev_raidz.c`, `vdev_raidz_map_alloc`). Of a block of the log some parts alone
    say so, and the others would be taken for data of a transaction group.
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
        role=Role.ZIL if log_blocks and role in OF_A_TXG else role,
        txg=txg_of(payload) if role is Role.UBERBLOCK else None,
        log_blocks=log_blocks,
    )


def _with_columns(writes: dict[int, DiskWrite]) -> dict[int, DiskWrite]:
    in_order = list(writes.values())
    told = dict(writes)
    for place, write in enumerate(in_order):
        if write.role is not Role.ZIL:
            continue
        for other in _near(in_order, place):
            number = other.event.seq
            if other.role not in OF_A_TXG or other.event.disk == write.event.disk:
                continue
            if _is_column(other.event, of=write.event):
                told[number] = replace(other, role=Role.ZIL)
            elif _overlap(other.event, write.event) and told[number].role is not Role.ZIL:
                told[number] = replace(other, is_mixed=True)
    return told


def _near(in_order: list[DiskWrite], place: int) -> list[DiskWrite]:
    number = in_order[place].event.seq
    around = in_order[max(0, place - _NEAR_EVENTS) : place + _NEAR_EVENTS + 1]
    return [other for other in around if abs(other.event.seq - number) <= _NEAR_EVENTS]


def _is_column(one: Event, *, of: Event) -> bool:
    is_there = abs(one.offset - of.offset) <= _SECTOR_BYTES
    return is_there and abs(one.length - of.length) <= _SECTOR_BYTES


def _overlap(one: Event, other: Event) -> bool:
    begins = max(one.offset, other.offset)
    return begins < min(one.offset + one.length, other.offset + other.length)

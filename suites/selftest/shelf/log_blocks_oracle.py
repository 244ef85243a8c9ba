"""The intent log that a cut would find behind each event, as slowly and obviously as we could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torture.facts.recording.events import WRITE_SUBMITS, Event, Kind
from torture.facts.recording.intent_log import Role

_SECTOR_BYTES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    event: Event
    covered_at: int
    """The event that covers it; the log's end where none does."""
    is_reusing: bool


def log_states(events: Sequence[Event], roles: Sequence[Role | None]) -> list[tuple[int, bool]]:
    """Behind each event: blocks that no flush covers, and whether one of them is where an older one was.

    How many is of the disk that has most; the older one was the last to be written there.
    """
    blocks = [
        _Block(
            event=event,
            covered_at=_covered_at(events, event),
            is_reusing=_is_reusing(events, roles, event),
        )
        for event in events
        if event.kind is Kind.WRITE_SUBMIT and roles[event.seq] is Role.ZIL
    ]
    states = []
    for now in range(len(events)):
        there = [block for block in blocks if block.event.seq <= now < block.covered_at]
        by_disk = Counter(block.event.disk for block in there)
        most = max(by_disk.values(), default=0)
        states.append((most, any(block.is_reusing for block in there)))
    return states


def _covered_at(events: Sequence[Event], write: Event) -> int:
    end = len(events)
    completion = next(
        (
            event.seq
            for event in events
            if event.kind is Kind.WRITE_COMPLETE and event.reference == write.seq
        ),
        end,
    )
    if write.fua:
        return completion
    return min(
        (
            event.seq
            for event in events
            if event.kind is Kind.FLUSH_COMPLETE
            and event.disk == write.disk
            and event.reference > completion
        ),
        default=end,
    )


def _is_reusing(events: Sequence[Event], roles: Sequence[Role | None], write: Event) -> bool:
    older = [
        event
        for event in events[: write.seq]
        if event.kind in WRITE_SUBMITS and event.disk == write.disk
    ]
    return any(
        _last_role(older, roles, sector) is Role.ZIL
        for sector in range(write.offset, write.offset + write.length, _SECTOR_BYTES)
    )


def _last_role(older: Sequence[Event], roles: Sequence[Role | None], place: int) -> Role | None:
    for event in reversed(older):
        if event.offset <= place < event.offset + event.length:
            return roles[event.seq]
    return None

"""The fewest dropped writes that still lose in the same way (pure; Zeller's ddmin, TSE 28(2), 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torture.facts.evidence.walk_document import DroppedWrite
from torture.facts.recording.crash_state import Torn
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.roles import role_of
from torture.facts.states.states import DistinctState
from torture.records.scoring.walked import StateVerdict

Dropped = tuple[int, ...]
"""Submissions of the writes that do not survive, ascending."""
_STATES_MAX = 100


def smallest(
    state: DistinctState,
    judged: StateVerdict,
    judge: Callable[[DistinctState], StateVerdict],
    *,
    is_over: Callable[[], bool],
) -> tuple[DistinctState, StateVerdict] | None:
    """A state with the fewest dropped writes that still loses as this one does, and its verdict.

    `judge` recovers some 100 states at most, and one more once the time `is_over`. None when the last
    one no longer loses.
    """

    def loses(part: Dropped) -> bool:
        return not is_over() and judge(state.dropping_only(part)).is_kind_of(judged)

    found = state.dropping_only(fewest(state.dropped, loses, asks_max=_STATES_MAX))
    shown = judge(found)
    return (found, shown) if shown.is_kind_of(judged) else None


def dropped_writes(state: DistinctState, recording: Recording) -> tuple[DroppedWrite, ...]:
    """The writes that a state drops, in words of their disks and roles."""
    return tuple(_described(recording, write, state.torn) for write in state.dropped)


def _described(recording: Recording, submission: int, torn: Torn | None) -> DroppedWrite:
    event = recording.events[submission]
    assert event.disk is not None
    is_write = event.kind is Kind.WRITE_SUBMIT
    sectors = torn[1] if torn is not None and torn[0] == submission else ()
    return DroppedWrite(
        disk=recording.disks[event.disk].name,
        role=role_of(recording.payload(event)) if is_write else event.kind,
        offset_bytes=event.offset,
        length_bytes=event.length,
        sectors_kept=len(sectors),
    )


def fewest(dropped: Sequence[int], loses: Callable[[Dropped], bool], *, asks_max: int) -> Dropped:
    """A part of `dropped` that loses something, while it loses nothing without any one of its writes.

    `loses` is asked once about a part, and at most `asks_max` times; the best part by then is
    returned. All of `dropped` must lose something.
    """
    known: dict[Dropped, bool] = {}

    def lost(part: Dropped) -> bool:
        if part not in known and len(known) < asks_max:
            known[part] = loses(part)
        return known.get(part, False)

    best, pieces = tuple(sorted(dropped)), 2
    if lost(()):
        return ()
    while len(best) > 1:
        parts = _split(best, pieces)
        rests = [tuple(write for write in best if write not in part) for part in parts]
        smaller = next((part for part in (*parts, *rests) if lost(part)), None)
        if smaller is not None:
            pieces = 2 if smaller in parts else max(pieces - 1, 2)
            best = smaller
        elif pieces < len(best):
            pieces = min(2 * pieces, len(best))
        else:
            break
    return best


def _split(writes: Dropped, pieces: int) -> list[Dropped]:
    pieces = min(pieces, len(writes))
    ends = [len(writes) * place // pieces for place in range(pieces + 1)]
    return [writes[begin:end] for begin, end in pairwise(ends)]

"""Sectors in which two writes met: the states that a crash may leave if transports tear sectors.

ZFS's intent log splits a write at any eight bytes if a block of it is full (OpenZFS, zil.c,
`zil_lwb_assign`). Replay ends at the end of the log's chain. A dataset has one chain, so a cut
leaves one sector of two writes. It begins or ends with data of a write that was under way.
"""

from __future__ import annotations

from collections.abc import Iterable

from torture.oracles.verdict.blocks.history import (
    GARBAGE,
    FileSeen,
    History,
    Readback,
    Sector,
    Step,
    window_before,
    window_of,
    windows_under_way,
)
from torture.oracles.verdict.observations import NEVER, Window, Windows, both

_HALF = "half:"


def is_half(sector: Sector, *, takes_garbage: bool) -> bool:
    """Whether a sector may be of two writes; `takes_garbage` if the read-back finds no halves."""
    is_garbage = takes_garbage and sector == GARBAGE
    return is_garbage or (isinstance(sector, str) and sector.startswith(_HALF))


def halves_in(readback: Readback) -> int:
    """The number of sectors of the read-back that may be of two writes."""
    seen = (*readback.files, *readback.temporaries)
    sectors: Iterable[Sector] = (one for file in seen for block in file.blocks for one in block)
    return sum(is_half(one, takes_garbage=not readback.finds_halves) for one in sectors)


def may_be_torn(history: History, sectors: tuple[Sector, ...]) -> bool:
    """Whether a split may have left the block's sector of two writes: it leaves exactly one."""
    halves = sum(is_half(one, takes_garbage=history.takes_garbage) for one in sectors)
    return history.tears_sectors and not history.is_raw and halves == 1


def parts_of(history: History, seen: FileSeen, seq: int) -> set[Sector]:
    """The possible contents of a sector in a new file with a part of this operation's write."""
    halves: set[Sector] = {f"{_HALF}{seq}:0", f"{_HALF}0:{seq}"}
    if history.takes_garbage:
        halves.add(GARBAGE)
    blocks = [block for block in seen.blocks if halves.intersection(block)]
    return halves if all(may_be_torn(history, block) for block in blocks) else set()


def windows_of_half(sector: str, steps: list[Step], end: int, *, came_whole: bool) -> Windows:
    """When a crash leaves this half sector in a place with these changes.

    The newer of its two writes is then under way. The older one, or the content before all writes,
    is in the place. `came_whole`: the first change is never seen half done, and nothing was before
    it. An older read-back does not name the two: any write may be the one under way.
    """
    if sector == GARBAGE:
        return windows_under_way(steps[1:] if came_whole else steps, end)
    places = {step.seq: place for place, step in enumerate(steps)}
    if not came_whole:
        places[0] = -1
    named = [int(seq) for seq in sector.removeprefix(_HALF).split(":")]
    if len(named) != 2 or not places.keys() >= set(named):
        return (NEVER,)
    older, newer = sorted(places[seq] for seq in named)
    if older == newer:
        return (NEVER,)
    held = window_before(steps, end) if older < 0 else window_of(steps, older, end)
    durable = steps[newer].durable
    under_way = Window(steps[newer].begin + 1, end if durable is None else durable)
    return both((held,), (under_way,))

"""Sectors in which two writes met: what a crash may leave of them where transports tear sectors.

ZFS's intent log splits a write at any eight bytes where a block of it is full (OpenZFS, zil.c,
`zil_lwb_assign`), and replay ends where the log's chain ends. A dataset has one chain, so a cut leaves
one such sector: it begins or ends as a write that was under way.
"""

from __future__ import annotations

from collections.abc import Iterable

from torture.oracles.verdict.blocks.history import (
    History,
    Step,
    window_before,
    window_of,
    windows_under_way,
)
from torture.oracles.verdict.blocks.readback import GARBAGE, FileSeen, Readback, Sector
from torture.oracles.verdict.moments import NEVER, Window, Windows, both

_HALF = "half:"


def is_half(sector: Sector, *, takes_garbage: bool) -> bool:
    """Whether a sector may be of two writes; `takes_garbage` where the read-back finds no halves."""
    is_garbage = takes_garbage and sector == GARBAGE
    return is_garbage or (isinstance(sector, str) and sector.startswith(_HALF))


def halves_in(readback: Readback) -> int:
    """How many sectors of the read-back may be of two writes."""
    seen = (*readback.files, *readback.temporaries)
    sectors: Iterable[Sector] = (one for file in seen for block in file.blocks for one in block)
    return sum(is_half(one, takes_garbage=not readback.finds_halves) for one in sectors)


def may_be_torn(history: History, sectors: tuple[Sector, ...]) -> bool:
    """Whether the block's one sector of two writes may be what a split left: that leaves one."""
    halves = sum(is_half(one, takes_garbage=history.takes_garbage) for one in sectors)
    return history.tears_sectors and not history.is_raw and halves == 1


def parts_of(history: History, seen: FileSeen, seq: int) -> set[Sector]:
    """What a sector may hold in a new file of which this operation's write left a part."""
    halves: set[Sector] = {f"{_HALF}{seq}:0", f"{_HALF}0:{seq}"}
    if history.takes_garbage:
        halves.add(GARBAGE)
    blocks = [block for block in seen.blocks if halves.intersection(block)]
    return halves if all(may_be_torn(history, block) for block in blocks) else set()


def windows_of_half(sector: str, steps: list[Step], end: int, *, came_whole: bool) -> Windows:
    """When a crash leaves this half sector in a place of which these are the changes.

    The newer of its two writes is under way then, and the older one, or what was there before all, is
    what the place held. `came_whole`: the first change is never seen half done, and nothing was before.
    An older read-back does not name the two: any write may be the one under way.
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

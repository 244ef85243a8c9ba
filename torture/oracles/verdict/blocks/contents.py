"""The content of one file, region or temporary file: the crash that explains it, and its breaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from torture.oracles.verdict.blocks.halves import is_half, may_be_torn, parts_of, windows_of_half
from torture.oracles.verdict.blocks.history import (
    ABSENT,
    ENDED,
    WHOLE,
    FileSeen,
    History,
    Incarnation,
    Name,
    Sector,
    Step,
    acknowledged_by,
    acknowledgements_of,
    window_before,
    window_of,
)
from torture.oracles.verdict.observations import NEVER, Window, Windows, both, union, windows_of

_ENOENT = 2
_BLOCK_BYTES = 4096


class Damage(StrEnum):
    """The sign in a block or a name that something acknowledged is missing."""

    MISSING = "missing"
    """The file is missing or too short, or the data are zeros or unreadable."""
    TORN = "torn"
    """A mixture of sectors, or one that is no valid sector at all."""
    STALE = "stale"
    """Whole and its own, but older than the acknowledged write."""
    FOREIGN = "foreign"
    """Valid, but of another place, file or trial, or never written there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockFinding:
    """One block, and the crash that explains it; `damage` and `lost` are those at the ledger's end.

    `is_mixed`: its sectors are of several operations, although each operation wrote all.
    """

    index: int
    windows: Windows
    holds: str
    is_mixed: bool
    damage: Damage | None
    lost: frozenset[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFinding:
    """One name; `damage` is that of the name or the size, blocks have their own."""

    what: str
    windows: Windows
    damage: Damage | None
    lost: frozenset[int]
    blocks: tuple[BlockFinding, ...] = ()


def examine_region(
    history: History, region: Incarnation, seen: FileSeen
) -> tuple[BlockFinding, ...]:
    """A region of a bare device, block by block: blocks that were read, and blocks that were written."""
    count = max((len(seen.blocks), *(index + 1 for index in region.blocks)))
    end_bytes = count * _BLOCK_BYTES
    blocks = (seen.sectors_of(index, end_bytes=end_bytes) for index in range(count))
    return tuple(_examine_block(history, region, *block) for block in enumerate(blocks))


def examine_file(history: History, name: Name, seen: FileSeen) -> FileFinding:
    """A name of the load's directory: absent, unreadable, or one of its incarnations."""
    if seen.errno == _ENOENT and not seen.listed:
        return _examine_absent(history, name, seen)
    if seen.errno is not None:
        lost = {name.bindings[-1].acknowledgement or 0} - {0}
        if name.current is not None:
            lost.update(acknowledgements_of(name.current))
        return FileFinding(
            what=f"{seen.name} cannot be read: errno {seen.errno}",
            windows=(),
            damage=Damage.MISSING,
            lost=frozenset(lost),
        )
    candidates = _candidates(name, seen)
    bound = windows_of(name.bindings, history.end)
    windows = {
        place: both((bound[place],), _inside(history, name, place, seen)) for place in candidates
    }
    best = max(candidates, key=lambda at: windows[at][-1].last if windows[at] else -1)
    together = union(chain.from_iterable(windows.values()))
    return _examine_as(history, name, best, seen, bound[best], together)


def _inside(history: History, name: Name, place: int, seen: FileSeen) -> Windows:
    """When a crash leaves this size and content in the incarnation of one binding."""
    incarnation = name.bindings[place].incarnation
    if incarnation is None:
        return ()
    windows: Windows = (_size_window(incarnation, seen.size_bytes, history.end),)
    for index, sectors in _blocks_within(incarnation, seen):
        is_torn = may_be_torn(history, sectors)
        for steps, sector in _readings(incarnation.blocks.get(index, []), sectors):
            allowed = _sector_windows(history, incarnation, steps, sector, is_torn=is_torn)
            windows = both(windows, allowed)
    return windows


def examine_temporary(history: History, name: Name | None, seen: FileSeen) -> FileFinding:
    """A temporary file: allowed while its rename is in flight, with any data of its writer."""
    windows: list[Window] = []
    lost: set[int] = set()
    held = set(chain.from_iterable(seen.blocks))
    for binding in name.bindings if name is not None else []:
        made = binding.incarnation
        if made is None or not made.is_atomic or seen.errno is not None:
            continue
        longest = made.sizes[0].size_blocks * _BLOCK_BYTES
        written = {made.seq, "zero", "partial"} | parts_of(history, seen, made.seq)
        if seen.size_bytes <= longest and held <= written:
            last = history.end if binding.durable is None else binding.durable
            windows.append(Window(binding.begin + 1, last))
            if binding.acknowledgement is not None:
                lost = {binding.acknowledgement}  # the last rename to which it can belong
    return FileFinding(
        what=f"{seen.name}, a temporary file, is still there",
        windows=tuple(windows),
        damage=Damage.STALE if windows else Damage.FOREIGN,
        lost=frozenset(lost),
    )


def _examine_absent(history: History, name: Name, seen: FileSeen) -> FileFinding:
    windows = windows_of(name.bindings, history.end)
    absences = [
        (windows[place], place)
        for place, binding in enumerate(name.bindings)
        if binding.incarnation is None
    ]
    latest, place = max(absences, key=lambda absence: absence[0].last)
    is_right = history.end in latest
    return FileFinding(
        what=f"{seen.name} is not there",
        windows=tuple(window for window, _ in absences if not window.is_empty),
        damage=None if is_right else Damage.MISSING,
        lost=frozenset() if is_right else frozenset(name.acknowledgements_after(place)),
    )


def _candidates(name: Name, seen: FileSeen) -> list[int]:
    """The bindings to which the content can belong: one if any sector says so, else all."""
    votes = Counter(
        name.by_seq[sector].seq
        for block in seen.blocks
        for sector in block
        if isinstance(sector, int) and sector in name.by_seq
    )
    places = {
        binding.incarnation.seq: place
        for place, binding in enumerate(name.bindings)
        if binding.incarnation is not None
    }
    if not votes:
        return list(places.values()) or [0]
    most = max(votes.values())
    return [places[max(seq for seq, count in votes.items() if count == most)]]


def _examine_as(
    history: History, name: Name, place: int, seen: FileSeen, bound: Window, windows: Windows
) -> FileFinding:
    """The damage of the file, taken for the incarnation of one binding."""
    end = history.end
    incarnation = name.bindings[place].incarnation
    if incarnation is None:  # no incarnation was ever made
        return FileFinding(
            what=f"{seen.name} was never made", windows=(), damage=Damage.FOREIGN, lost=frozenset()
        )
    what, damage = f"{seen.name} of {seen.size_bytes} bytes", None
    lost: set[int] = set()
    if end not in bound:
        what, damage = f"{seen.name} is the file of operation {incarnation.seq}", Damage.STALE
        lost.update(name.acknowledgements_after(place))
    if end not in _size_window(incarnation, seen.size_bytes, end):
        what, damage = f"{seen.name} has {seen.size_bytes} bytes", Damage.MISSING
        beyond = _acknowledgements_beyond(incarnation, seen.size_bytes)
        if not beyond:
            damage = Damage.FOREIGN
        lost.update(beyond)
    return FileFinding(
        what=what,
        windows=windows,
        damage=damage,
        lost=frozenset(lost),
        blocks=tuple(
            _examine_block(history, incarnation, index, sectors)
            for index, sectors in _blocks_within(incarnation, seen)
        ),
    )


def _blocks_within(
    incarnation: Incarnation, seen: FileSeen
) -> Iterator[tuple[int, tuple[Sector, ...]]]:
    """Each block that was read, or was written and lies within the file's size, with its sectors."""
    written = (index + 1 for index in incarnation.blocks if index * _BLOCK_BYTES < seen.size_bytes)
    for index in range(max((len(seen.blocks), *written))):
        yield index, seen.sectors_of(index)


def _size_window(incarnation: Incarnation, size_bytes: int, end: int) -> Window:
    """When a crash leaves this size: one that was set, or one between two during growth."""
    before = 0
    for place, step in enumerate(incarnation.sizes):
        after = step.size_blocks * _BLOCK_BYTES
        if size_bytes == after:
            return window_of(incarnation.sizes, place, end)
        if (place > 0 or not incarnation.is_atomic) and before <= size_bytes < after:
            return Window(step.begin + 1, end if step.durable is None else step.durable)
        before = after
    return NEVER


def _acknowledgements_beyond(incarnation: Incarnation, size_bytes: int) -> set[int]:
    """Acknowledged operations whose effect lies beyond this size."""
    sizes = (step for step in incarnation.sizes if step.size_blocks * _BLOCK_BYTES > size_bytes)
    blocks = (
        steps
        for index, steps in incarnation.blocks.items()
        if (index + 1) * _BLOCK_BYTES > size_bytes
    )
    return set(acknowledged_by(chain(sizes, *blocks)))


def _examine_block(
    history: History, incarnation: Incarnation, index: int, sectors: tuple[Sector, ...]
) -> BlockFinding:
    steps = incarnation.blocks.get(index, [])
    kinds = tuple(dict.fromkeys(sectors))
    windows: Windows = (Window(0, history.end),)
    wrong: list[_Reading] = []
    is_torn = may_be_torn(history, sectors)
    for reading in _readings(steps, sectors):
        allowed = _sector_windows(history, incarnation, *reading, is_torn=is_torn)
        windows = both(windows, allowed)
        if not any(history.end in window for window in allowed):
            wrong.append(reading)
    # each place of a block that was written in parts has a history of its own
    parts: _Histories = [(own, (sector,)) for own, sector in wrong]
    histories = [(steps, kinds)] if wrong and _is_whole(steps) else parts
    return BlockFinding(
        index=index,
        windows=windows,
        holds=" and ".join(
            kind if isinstance(kind, str) else f"operation {kind}" for kind in kinds
        ),
        is_mixed=len(kinds) > 1 and _is_whole(steps),
        damage=_damage(histories) if wrong else None,
        lost=frozenset().union(*(_acknowledgements_not_kept(*one) for one in histories)),
    )


_Reading = tuple[list[Step], Sector]
"""A sector that was read, and the changes of its place."""
_Histories = list[tuple[list[Step], tuple[Sector, ...]]]
"""Changes, with the different sectors that were read where they were made."""


def _is_whole(steps: list[Step]) -> bool:
    return all(step.sectors == WHOLE for step in steps)


def _readings(steps: list[Step], sectors: tuple[Sector, ...]) -> list[_Reading]:
    if _is_whole(steps):  # then all places are alike
        return [(steps, sector) for sector in dict.fromkeys(sectors)]
    return [
        ([step for step in steps if place in step.sectors], sector)
        for place, sector in enumerate(sectors)
    ]


def _sector_windows(
    history: History, incarnation: Incarnation, steps: list[Step], sector: Sector, *, is_torn: bool
) -> Windows:
    """When a crash leaves this content in a place with these changes."""
    came_whole = incarnation.is_atomic and bool(steps) and steps[0].seq == incarnation.seq
    if is_torn and is_half(sector, takes_garbage=history.takes_garbage):
        return windows_of_half(str(sector), steps, history.end, came_whole=came_whole)
    return (_whole_sector_window(history, steps, sector, came_whole=came_whole),)


def _whole_sector_window(
    history: History, steps: list[Step], sector: Sector, *, came_whole: bool
) -> Window:
    if isinstance(sector, int):
        place = next((i for i, step in enumerate(steps) if step.seq == sector), None)
        return NEVER if place is None else window_of(steps, place, history.end)
    if sector == ABSENT or sector.startswith("errno"):
        may_be_anything = history.ignores_errors and sector not in (ABSENT, ENDED)
        return Window(0, history.end) if may_be_anything else NEVER
    if history.is_raw:
        own = sector.startswith(f"foreign:{history.trial}:")
        return NEVER if own else window_before(steps, history.end)
    if sector == "partial":  # the end of the file lies in it: the size explains it
        return Window(0, history.end)
    if sector != "zero" or not steps or came_whole:
        return NEVER
    return window_before(steps, history.end)  # not before the size grew over it


def _acknowledgements_not_kept(steps: list[Step], kinds: tuple[Sector, ...]) -> set[int]:
    """Acknowledged writes newer than the oldest valid sector; without any, the newest of them."""
    acknowledged = list(acknowledged_by(steps))
    oldest = next((place for place, step in enumerate(steps) if step.seq in kinds), None)
    if oldest is not None and (newer := set(acknowledged_by(steps[oldest + 1 :]))):
        return newer
    return set(acknowledged if kinds == ("zero",) else acknowledged[-1:])


def _damage(histories: _Histories) -> Damage:
    kinds = tuple(dict.fromkeys(sector for _, sectors in histories for sector in sectors))
    known = {step.seq for steps, _ in histories for step in steps}
    if any(isinstance(kind, str) and kind.startswith("foreign") for kind in kinds):
        return Damage.FOREIGN
    if any(isinstance(kind, int) and kind not in known for kind in kinds):
        return Damage.FOREIGN
    if len(kinds) > 1 or is_half(kinds[0], takes_garbage=True):
        return Damage.TORN
    return Damage.STALE if isinstance(kinds[0], int) else Damage.MISSING

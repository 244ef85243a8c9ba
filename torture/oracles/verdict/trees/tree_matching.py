"""The changes of a thing that explain its found state, and the moments at which they do."""

from __future__ import annotations

from collections.abc import Iterator

from torture.oracles.verdict.blocks.readback import ABSENT, GARBAGE
from torture.oracles.verdict.moments import NEVER, Window, Windows, union, windows_of
from torture.oracles.verdict.trees.tree_history import ANY, SECTOR_BYTES, ZERO, Change, Trees
from torture.oracles.verdict.trees.tree_seen import FoundFile
from torture.oracles.verdict.trees.tree_syncs import Key, Thing


def things_in(trees: Trees, number: int, found: FoundFile) -> Iterator[tuple[Key, Windows]]:
    """All observations of a file, taken for this one, and when a crash leaves it so."""
    yield _thing(trees, (Thing.SIZE, number, 0), found.size_bytes)
    yield _thing(trees, (Thing.MODE, number, 0), found.mode)
    yield _thing(trees, (Thing.MTIME, number, 0), found.mtime_ns)
    yield _thing(trees, (Thing.LINKS, number, 0), found.links)
    for name in sorted(trees.xattrs.get(number, set()) | found.xattrs.keys()):
        yield _thing(trees, (Thing.XATTR, number, name), found.xattrs.get(name))
    written = trees.sectors.get(number, set())
    for first, count, holder in found.runs:
        run = range(first, first + count)
        may_be_half = trees.tears_sectors and holder == GARBAGE
        for sector in (one for one in run if holder != ZERO or one in written):
            yield _thing(trees, (Thing.SECTOR, number, sector), holder, may_be_half=may_be_half)
    for gap in _gaps_in(found):
        # data never written are zeroes, and there: one sector stands for all of these
        for sector in sorted(written.intersection(gap)) or gap[:1]:
            yield _thing(trees, (Thing.SECTOR, number, sector), ABSENT)
    beyond = -(-found.size_bytes // SECTOR_BYTES)
    for sector in sorted(one for one in written if one >= beyond):
        # durable data are within the file, whatever its size should be: O_DSYNC, open(2)
        yield _thing(trees, (Thing.SECTOR, number, sector), ZERO)


def _gaps_in(found: FoundFile) -> Iterator[range]:
    """The whole sectors within a file's length that were not read back."""
    end = 0
    whole = found.size_bytes // SECTOR_BYTES
    for first, count, _ in sorted(found.runs, key=lambda run: run[:2]):
        if first > end:
            yield range(end, min(first, whole))
        end = max(end, first + count)
    if end < whole:
        yield range(end, whole)


def _thing(
    trees: Trees, key: Key, seen: int | str | None, *, may_be_half: bool = False
) -> tuple[Key, Windows]:
    changes = trees.changes_of(key)
    windows = windows_of(changes, trees.end)
    fitting = [
        window & _while_it_fits(change, key[0], seen, trees.end)
        for change, window in zip(changes, windows, strict=True)
    ]
    # on its way from one value to the next, and never once that is durable
    fitting += [
        window if after.durable is None else window & Window(0, after.durable)
        for before, after, window in zip(changes, changes[1:], windows[1:], strict=False)
        if _is_between(key[0], before, after, seen, may_be_half=may_be_half)
    ]
    return key, union(fitting)


def _while_it_fits(change: Change, thing: Thing, seen: int | str | None, end: int) -> Window:
    """When the seen value may be this change: at all moments or never, except a number of links.

    That may be off by the names on their way until the last of these is durable.
    """
    if change.value in (ANY, seen):
        return Window(0, end)
    if thing is not Thing.LINKS:
        return NEVER
    assert isinstance(change.value, int)
    assert isinstance(seen, int)
    if abs(seen - change.value) > len(change.slack_of):
        return NEVER
    durables = (end if name.durable is None else name.durable for name in change.slack_of)
    return Window(0, max(durables))


def _is_between(
    thing: Thing, before: Change, after: Change, seen: int | str | None, *, may_be_half: bool
) -> bool:
    """Whether the seen value may be half a change; a zeroed sector is zeroed whole."""
    if thing is Thing.SECTOR:
        return may_be_half and after.value != ZERO
    if thing is not Thing.SIZE:
        return False
    assert isinstance(before.value, int)
    assert isinstance(after.value, int)
    assert isinstance(seen, int)
    low, high = sorted((before.value, after.value))
    return low < seen < high

"""The oracle of the writers' trees: whether all synced things are there, are old but consistent, or not.

It works as with the ledger's files (`torture/oracles/verdict/blocks/oracle.py`). Each thing that is
seen, or is missing, becomes the moments at which a crash could have left it so (`tree_history.py`).
If the moment after everything is in all of them, nothing is lost. If only another one is, all went
back in time. If none is, or if there is a thing that no writer made, the trees are corrupted.

The whole content behind a name identifies its file: the sectors say who wrote them. A file with two
names is one: the inode's number says so. The oracle does not look for things in a missing
directory. If the directory should be there, its own name says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torture.facts.evidence.ledger import Begin, Ledger
from torture.oracles.verdict.blocks.history import ABSENT, GARBAGE
from torture.oracles.verdict.guarantee import UnreadableError
from torture.oracles.verdict.judgement import Findings, conclude
from torture.oracles.verdict.observations import (
    NEVER,
    Observations,
    Rule,
    Window,
    Windows,
    both,
    union,
    windows_of,
)
from torture.oracles.verdict.trees.tree_history import (
    ANY,
    SECTOR_BYTES,
    ZERO,
    Change,
    Trees,
    build_trees,
)
from torture.oracles.verdict.trees.tree_syncs import (
    FoundDirectory,
    FoundEntry,
    FoundFile,
    FoundLink,
    FoundTrees,
    Key,
    Thing,
    Unusable,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Explanation:
    """A change of a name that can explain the found state, and its moments."""

    place: int
    windows: Windows


@dataclass(kw_only=True, slots=True)
class _Account:
    """Gathers the results of all observations."""

    trees: Trees
    observations: Observations
    directories: dict[int, FoundDirectory] = field(default_factory=dict)
    """Those that are there, by number."""
    inodes: dict[int, dict[int, str]] = field(default_factory=dict)
    """By file, the inodes behind its names."""
    lost: set[int] = field(default_factory=set)
    missing: int = 0
    stale: int = 0
    foreign: int = 0
    reasons: list[str] = field(default_factory=list)
    _explained: dict[tuple[int, Key, int], Windows] = field(default_factory=dict)
    """By the directory as it was found: a damaged one may be there twice, and not alike."""

    def gather(self, number: int, directory: FoundDirectory) -> None:
        """A directory that is there, and those in it."""
        self.directories[number] = directory
        for name, entry in directory.entries.items():
            if isinstance(entry, FoundDirectory):
                for below in self._meant_by((Thing.NAME, number, name), "dir"):
                    self.gather(below, entry)

    def _meant_by(self, key: Key, kind: str) -> list[int]:
        meant = (change.value for change in self.trees.changes_of(key))
        return [one for one in meant if isinstance(one, int) and self.trees.kinds[one] == kind]

    def account_for(self, number: int, directory: FoundDirectory, path: str) -> None:
        """Account for all names that are in a directory, or were."""
        known = self.trees.names.get(number, [])
        for name in known:
            key: Key = (Thing.NAME, number, name)
            entry = directory.entries.get(name)
            explained = self.explanations(key, directory)
            windows = union(window for one in explained for window in one.windows)
            if any(self.trees.end in window for window in windows):
                self._add(f"{path}/{name}", windows)
            else:
                reason, lost = self._blame(key, entry, f"{path}/{name}")
                self._add(reason, windows, lost)
                self.reasons.append(reason if windows else f"{reason}; no crash explains this")
            if isinstance(entry, FoundFile) and explained:
                self._know(key, explained, entry, f"{path}/{name}")
            elif isinstance(entry, FoundDirectory):
                for below in self._meant_by(key, "dir"):
                    self.account_for(below, entry, f"{path}/{name}")
        for name in sorted(directory.entries.keys() - set(known)):
            self.impossible(f"{path}/{name} was never made")

    def impossible(self, why: str) -> None:
        """A thing that no crash explains."""
        self._add(why, ())
        self.foreign += 1
        self.reasons.append(why)

    def out_of_reach(self, root: int, tree: FoundEntry, own: Iterable[int]) -> None:
        """A writer's own directory, and with it all acknowledgements of its `own` transactions.

        It was there for good before the load began: no crash since takes it away.
        """
        self.missing += 1
        lost = self.trees.acknowledged.keys() & own
        self.lost.update(lost)
        self.reasons.append(f"the directory of writer {root} cannot be read: {tree}")
        self._add(self.reasons[-1], (), lost)

    def _add(self, seen: str, windows: Windows, breaks: Iterable[int] = ()) -> None:
        self.observations.add(seen, windows, rule=Rule.TREE, breaks=breaks)

    def explanations(
        self, key: Key, directory: FoundDirectory, *, since: int = 0
    ) -> tuple[_Explanation, ...]:
        """The changes of a name, from one of them on, that explain its state in a directory.

        A renamed thing leans on later changes of its new name alone. So this ends where two things
        take each other's names.
        """
        entry = directory.entries.get(str(key[2]))
        changes = self.trees.changes_of(key)
        found = []
        for place, window in enumerate(windows_of(changes, self.trees.end)[since:], start=since):
            at = (id(directory), key, place)
            if at not in self._explained:
                self._explained[at] = self._when(changes[place], window, entry)
            if self._explained[at]:
                found.append(_Explanation(place=place, windows=self._explained[at]))
        return tuple(found)

    def _when(self, change: Change, window: Window, entry: FoundEntry | None) -> Windows:
        windows = union((window,))
        number, kind = change.value, ""
        if isinstance(number, int):
            kind = self.trees.kinds[number]
        match entry:
            case None if number is None:
                if change.leans_on is not None:
                    windows = both(windows, self._moved_to(*change.leans_on))
            case FoundDirectory() if kind == "dir":
                pass
            case FoundLink(target=target) if kind == "symlink":
                assert isinstance(number, int)
                if target != self.trees.targets[number]:
                    windows = ()
            case FoundFile() if kind == "file":
                assert isinstance(number, int)
                for _, others in _things_in(self.trees, number, entry):
                    windows = both(windows, others)
                    if not windows:
                        break
            case _:
                windows = ()
        return windows

    def _moved_to(self, key: Key, place: int) -> Windows:
        """When the renamed thing is behind its new name, or has gone on from there."""
        directory = self.directories.get(key[1])
        if directory is None:
            return (Window(0, self.trees.end),)
        later = self.explanations(key, directory, since=place)
        return union(window for one in later for window in one.windows)

    def _know(
        self, key: Key, explained: tuple[_Explanation, ...], entry: FoundFile, path: str
    ) -> None:
        """Keep the inode of a file whose content identifies it."""
        if any(isinstance(holder, int) for _, _, holder in entry.runs):
            best = max(explained, key=lambda one: one.windows[-1].last)
            number = self.trees.changes_of(key)[best.place].value
            assert isinstance(number, int)
            self.inodes.setdefault(number, {})[entry.inode] = path

    def _blame(self, key: Key, entry: FoundEntry | None, path: str) -> tuple[str, set[int]]:
        """The fault of a name, and the operations whose acknowledgements it breaks."""
        current = self.trees.current(key)
        if entry is None:
            self.missing += 1
            return f"{path} is gone", self._lost_of(key)
        if isinstance(entry, Unusable):
            self.missing += 1
            return f"{path} cannot be used: {entry.why}", self._lost_of(key)
        if not (isinstance(entry, FoundFile) and isinstance(current, int)):
            self.stale += 1
            return f"{path} is still there, or is something else", self._lost_of(key)
        wrong = [
            thing
            for thing, windows in _things_in(self.trees, current, entry)
            if not any(self.trees.end in window for window in windows)
        ]
        self.stale += max(1, len(wrong))
        words = ", ".join(f"{thing[0]} {thing[2]}".removesuffix(" 0") for thing in wrong[:4])
        reason = f"{path} is not in its synced state: {words or 'another file'}"
        return reason, self._lost_of(*(wrong or [key]))

    def _lost_of(self, *keys: Key) -> set[int]:
        """The last acknowledgement of each of these things, which is not kept."""
        lost: set[int] = set()
        for key in keys:
            seqs = [change.acknowledgement for change in self.trees.changes_of(key)]
            lost.update([seq for seq in seqs if seq is not None][-1:])
        self.lost |= lost
        return lost


def consult_trees(
    ledger: Ledger, seen: FoundTrees, *, cut_ms: float | None, tears_sectors: bool = False
) -> Findings:
    """The fate of the ledger's acknowledgements; raises `UnreadableError` for an inconsistent ledger.

    `tears_sectors`: as in the cell's terms.
    """
    writers = ledger.writers or len(seen.trees)
    if len(seen.trees) > writers:
        raise UnreadableError(f"{len(seen.trees)} trees were read back of {writers} writers")
    trees = build_trees(ledger, writers=writers, garbage=seen.garbage, tears_sectors=tears_sectors)
    found = dict(zip(trees.roots, seen.trees, strict=False))
    account = _Account(trees=trees, observations=Observations(end=trees.end))
    begun = [event for event in ledger.events if isinstance(event, Begin)]
    for root, tree in found.items():
        if isinstance(tree, FoundDirectory):
            account.gather(root, tree)
    for root in trees.roots:
        tree = found.get(root, Unusable(why="it was not read back"))
        if isinstance(tree, FoundDirectory):
            account.account_for(root, tree, str(root))
        else:
            own = (event.seq for event in begun if event.writer == root)
            account.out_of_reach(root, tree, own)
    for number, names in account.inodes.items():
        if len(names) > 1:
            account.impossible(
                f"file {number} is now several files: {', '.join(sorted(names.values()))}"
            )
    return conclude(
        ledger,
        account.observations.last_common(),
        Findings(
            acknowledged=len(trees.acknowledged),
            lost=len(account.lost),
            missing=account.missing,
            stale=account.stale,
            foreign=account.foreign,
            reasons=tuple(account.reasons),
            observations=account.observations.telling,
        ),
        last=trees.end - 1,
        cut_ms=cut_ms,
        otherwise="no single moment explains all names and files",
        noun="transaction",
    )


def _things_in(trees: Trees, number: int, found: FoundFile) -> Iterator[tuple[Key, Windows]]:
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

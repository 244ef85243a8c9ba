"""Observations: the things that were read back, with the moments of a crash that explains each.

They carry a verdict's reasons: if no single moment explains all of them, two of them show why.

Sets of moments: the places of the ledger at which a crash would explain an observation.

A moment t is a number in 0..end: the events before place t had happened, those from t on had not.
`end`, the number of events, is the moment after everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, combinations
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Window:
    """The moments `first` to `last`, both included; empty when `last` is smaller."""

    first: int
    last: int

    def __and__(self, other: Window) -> Window:
        return Window(max(self.first, other.first), min(self.last, other.last))

    def __contains__(self, moment: int) -> bool:
        return self.first <= moment <= self.last

    @property
    def is_empty(self) -> bool:
        """Whether no moment is in it."""
        return self.last < self.first


Windows = tuple[Window, ...]
"""Disjoint, in order."""

NEVER = Window(0, -1)
"""No crash explains it."""


class Lasting(Protocol):
    """A change of something; `durable` is the place of what made it so, if anything did."""

    begin: int
    durable: int | None


def windows_of(changes: Sequence[Lasting], end: int) -> list[Window]:
    """When a crash leaves exactly each of these: begun, and nothing later durable."""
    windows: list[Window] = []
    last = end
    for change in reversed(changes):
        windows.append(Window(change.begin + 1, last))
        if change.durable is not None:
            last = min(last, change.durable)
    return windows[::-1]


def union(windows: Iterable[Window]) -> Windows:
    """The same moments as disjoint windows in order."""
    merged: list[Window] = []
    for window in sorted((w for w in windows if not w.is_empty), key=lambda w: w.first):
        if merged and window.first <= merged[-1].last + 1:
            merged[-1] = Window(merged[-1].first, max(merged[-1].last, window.last))
        else:
            merged.append(window)
    return tuple(merged)


def both(some: Windows, others: Windows) -> Windows:
    """The moments that are in both: one pass over the two, as over two sorted lists."""
    found: list[Window] = []
    place = 0
    for one in some:
        while place < len(others):
            if not (common := one & others[place]).is_empty:
                found.append(common)
            if others[place].last > one.last:
                break
            place += 1
    return tuple(found)


_KEPT_MAX = 8
"""The limit of kept observations: a verdict needs few; a lost disk has thousands."""
_COMPARED_MAX = 300


class Rule(StrEnum):
    """The rules that exclude moments."""

    CONTENT = "content"
    NAME = "name"
    TEMPORARY = "temporary"
    STAYS = "stays"
    OURS = "ours"
    TREE = "tree"
    TRANSACTION = "transaction"

    @property
    def words(self) -> str:
        """The rule, as a sentence."""
        return _RULES[self][0]

    @property
    def source(self) -> str:
        """The place outside this project that has the rule."""
        return _RULES[self][1]


_RULES = {
    Rule.CONTENT: (
        "A block holds its last acknowledged write, or one that was under way at the crash.",
        "fsync(2), fdatasync(2); open(2), O_DSYNC",
    ),
    Rule.NAME: (
        "A name has the file, and the file the length, of the last synced call.",
        "fsync(2), on directories; rename(2)",
    ),
    Rule.TEMPORARY: (
        "A temporary file is there only while its rename is under way.",
        "rename(2)",
    ),
    Rule.STAYS: (
        "A device or directory that was durable before the load survives every crash.",
        "fsync(2)",
    ),
    Rule.OURS: (
        "The load's directory holds only files that the load made.",
        "the load's own ledger",
    ),
    Rule.TREE: (
        "Each name, length, attribute and sector is as its last sync left it, or as a later call.",
        "fsync(2), rename(2), open(2); `tree_syncs.py` has the passages",
    ),
    Rule.TRANSACTION: (
        "A durable transaction is there; a lazy one is missing only with all later ones.",
        "the manual of the database or program, as its workload cites it",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One thing that was read back."""

    seen: str
    rule: Rule
    windows: Windows
    """The moments at which a crash explains it, as places in the ledger; none: no crash does."""
    breaks: tuple[int, ...] = ()
    """The operations whose acknowledgements it breaks."""


@dataclass(kw_only=True, slots=True)
class Observations:
    """All observations of one read-back; `end` is the moment after everything."""

    end: int
    _count: int = 0
    _changes: list[int] = field(init=False)
    """By moment, how many more observations it explains than the one before: linear to add and read."""
    _wrong: list[Observation] = field(default_factory=list)
    """The observations that a crash at the end does not explain."""
    _right: list[Observation] = field(default_factory=list)
    """Of the others, the observations that exclude most: the highest first moments."""

    def __post_init__(self) -> None:
        self._changes = [0] * (self.end + 2)

    def add(self, seen: str, windows: Windows, *, rule: Rule, breaks: Iterable[int] = ()) -> bool:
        """Count one; returns whether a crash at the end explains it. `windows` are disjoint."""
        self._count += 1
        for window in windows:
            self._changes[window.first] += 1
            self._changes[window.last + 1] -= 1
        is_right = any(self.end in window for window in windows)
        if is_right and not windows[0].first:
            return True
        one = Observation(seen=seen, rule=rule, windows=windows, breaks=tuple(sorted(set(breaks))))
        (self._right if is_right else self._wrong).append(one)
        return is_right

    def last_common(self) -> int | None:
        """The latest moment that explains every observation, if there is one."""
        explained = enumerate(accumulate(self._changes[:-1]))
        return max((moment for moment, count in explained if count == self._count), default=None)

    @property
    def telling(self) -> tuple[Observation, ...]:
        """The few that decide the verdict; without a common moment two that exclude each other."""
        if not self._wrong:
            return ()
        earliest = sorted(self._wrong, key=lambda one: one.windows[-1].last if one.windows else -1)
        if self.last_common() is not None or not earliest[0].windows:
            return tuple(earliest[:_KEPT_MAX])
        latest = sorted(self._right, key=lambda one: -one.windows[0].first)
        pair = conflict_in((*earliest, *latest)) or ()
        others = (one for one in earliest if one not in pair)
        return (*pair, *others)[:_KEPT_MAX]


def conflict_in(observations: Sequence[Observation]) -> tuple[Observation, Observation] | None:
    """Two observations that no single moment explains, if two suffice."""
    for one, other in combinations(observations[:_COMPARED_MAX], 2):
        if one.windows and other.windows and not both(union(one.windows), union(other.windows)):
            return one, other
    return None

"""Sets of moments: the places of the ledger at which a crash would explain an observation.

A moment t is a number in 0..end: the events before place t had happened, those from t on had not.
`end`, the number of events, is the moment after everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

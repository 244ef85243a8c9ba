"""Shards: several machines share the cells of one run, and each runs its share (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from torture.choices.matrix.cells import FATE, SYNC, Cell
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync

_WRITTEN = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """One of the `of` shares of a run's cells; written `3/12`.

    Raises `ValueError` unless 1 <= number <= of.
    """

    number: int
    """Its number, from 1."""
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"there is no shard {self.number} of {self.of}: they count from 1")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that this text names; raises `ValueError`, which explains the form."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no shard: write the third of twelve as 3/12")
        return cls(number=int(found[1]), of=int(found[2]))

    @classmethod
    def all_of(cls, count: int) -> tuple[Self, ...]:
        """Every shard of `count`."""
        return tuple(cls(number=number, of=count) for number in range(1, count + 1))

    def share_of(self, cells: Iterable[Cell]) -> frozenset[Cell]:
        """Its share of these cells: the same for every order and number of repetitions.

        Each shard gets one cell in turn. So no shard has two cells more than another. Nor does it
        have two more cells whose client lives on: these take much longer.
        """
        return frozenset(sorted(set(cells), key=_place)[self.number - 1 :: self.of])


def _place(dealt: Cell) -> tuple[Fate, Sync, str]:
    return dealt[FATE], dealt[SYNC], dealt.name

"""An axis is one declaration: its choices, their words, its default, its place in a cell's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from torture.facts.axes.sweeps import Sweep

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Chosen = Mapping[str, "Choice[Any]"]
"""The choices of a cell, by their axis' field."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice(Generic[T]):
    """One choice on an axis.

    `name` is its part of a cell's name and a pytest mark: an identifier, on no other axis. A page and a
    table print `words`; docs/axes.md adds `explained` to the name.
    """

    name: str
    value: T
    """The value that the engine uses."""
    words: str
    explained: str = ""
    joins: frozenset[Sweep] = frozenset()
    """The sweeps, and so the matrices, that have cells with this choice."""
    place: int = 1000
    """Its rank on its axis; equal ranks are ordered by name."""


def choices_of(
    words: Mapping[E, tuple[str, str]], joins: Mapping[E, frozenset[Sweep]]
) -> tuple[Choice[E], ...]:
    """A choice of each value, by its words and its `explained`; a value without `joins` joins none."""
    return tuple(
        Choice(
            name=value.value,
            value=value,
            words=said,
            explained=explained,
            joins=joins.get(value, frozenset()),
        )
        for value, (said, explained) in words.items()
    )


def applies_always(_chosen: Chosen) -> str | None:
    """The rule of an axis that affects every cell."""
    return None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Axis(Generic[T]):
    """A property that varies between cells."""

    field: str
    """Its key in records and its column in exports."""
    noun: str
    """The word for one of its choices in error messages."""
    title: str
    """Its name on the page."""
    place: int
    """The rank of its part in a cell's name, and of its column in tables."""
    choices: tuple[Choice[T], ...]
    default: str | None = None
    """The choice of a cell whose name omits this axis; a name never states it."""
    is_always_shown: bool = False
    """Whether a page states the choice even if all cells have the same one."""
    varies_last: bool = False
    """Whether a matrix lists cells that differ only here next to each other."""
    is_setting: bool = False
    """Whether it is one of many settings, most of them ZFS's. A page omits it if all cells have the
    default.
    """
    reads: Callable[[str], Choice[T]] | None = None
    """Makes a choice of any other name, where there are too many to list. Raises `KeyError` for a name
    that is none, and `ValueError` with the reason for a bad one.
    """
    inapplicable: Callable[[Chosen], str | None] = applies_always
    """Returns why a choice here has no effect with the other choices ("is ..."), or None if it has one.

    Only the default is allowed then, and a record leaves it empty.
    """

    def choice(self, name: str) -> Choice[T]:
        """The choice of this name; raises `KeyError`, or what `reads` raises."""
        for choice in self.choices:
            if choice.name == name:
                return choice
        if self.reads is not None:
            return self.reads(name)
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """Whether this is a choice's name, if only of a bad one."""
        try:
            self.choice(name)
        except KeyError:
            return False
        except ValueError:
            return True
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The choices' names, in the order of the axis."""
        return tuple(choice.name for choice in self.choices)

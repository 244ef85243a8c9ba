"""An axis is one declaration: its choices, their words, its default, its place in a cell's name.

Words in names of cells that are others today: the seeds of their trials are drawn from the old name.

Cells are shown and chosen under today's names. Names with former words still parse.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep

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


def table_beside(module: str) -> dict[str, Any]:
    """The TOML file of the same name beside a module, which is named by its `__file__`."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def choice_of(row: Mapping[str, Any], value: T) -> Choice[T]:
    """The choice of this value in a row of a table: `name`, `words`, `explained`, `place`, and sweeps.

    `joins` are all of its sweeps, or `leaves` those that it does not join.
    """
    left = EVERY_SWEEP - set(map(Sweep, row.get("leaves", ())))
    joins = frozenset(map(Sweep, row.get("joins", ())))
    said = {key: row[key] for key in ("name", "words", "explained", "place") if key in row}
    return Choice(value=value, joins=left if "leaves" in row else joins, **said)


def choices_beside(module: str, values: Mapping[str, T]) -> tuple[Choice[T], ...]:
    """The choices of the table beside a module, each with the value of its name."""
    return tuple(choice_of(row, values[row["name"]]) for row in table_beside(module)["choices"])


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
    composed: Callable[[Chosen], T] | None = None
    """Makes the value from a cell's other choices, too, where the choice alone is not all of it."""
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


class Former(NamedTuple):
    """The place of a former word, and its meaning."""

    axis: str
    """The field that its axis had."""
    place: int
    """The place of that axis in names (`torture.facts.axes.axis.Axis.place`)."""
    today: str
    """The name of the choice today; `NAME=VALUE` for a setting of ZFS, which is a part of a choice.
    Two choices, joined by a dash, are on this axis and on the next one.
    """


FORMER_NAMES = {
    "throughput": Former("logbias", 45, "logbias=throughput"),
    "volblock4k": Former("volblocksize", 61, "volblocksize=4K"),
    "volblock16k": Former("volblocksize", 61, "volblocksize=16K"),
    "volblock64k": Former("volblocksize", 61, "volblocksize=64K"),
    "volblock128k": Former("volblocksize", 61, "volblocksize=128K"),
    "record4k": Former("recordsize", 62, "recordsize=4K"),
    "record16k": Former("recordsize", 62, "recordsize=16K"),
    "lz4": Former("compression", 63, "compression=lz4"),
    "zstd": Former("compression", 63, "compression=zstd"),
    "dedup": Former("dedup", 64, "dedup=on"),
    "blkmq": Former("zvol_use_blk_mq", 67, "zfs.zvol_use_blk_mq=1"),
    "nfs_image_dsync": Former("transport", 10, "nfs_image-directsync"),
}


def todays_parts(parts: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The parts of a cell's name as they are today, without former ones that are settings of ZFS.

    These are the second value.
    """
    today: list[str] = []
    settings: dict[str, str] = {}
    for part in parts:
        name, equals, value = (FORMER_NAMES[part].today if part in FORMER_NAMES else "").partition(
            "="
        )
        if equals:
            settings[name] = value
        else:
            today += (name or part).split("-")
    return today, settings


def frozen_name(parts: Iterable[tuple[int, str]]) -> str:
    """The name from which seeds derive: the parts of today's name, each with its place, as once."""
    words = {former.today: (former.place, word) for word, former in FORMER_NAMES.items()}
    frozen: list[tuple[int, str]] = []
    for place, part in parts:
        pieces = part.split("+")
        frozen += [words[piece] for piece in pieces if piece in words]
        if left := [piece for piece in pieces if piece not in words]:
            frozen.append((place, "+".join(left)))
    name = "-".join(part for _, part in sorted(frozen))
    for today in (pair for pair in words if "-" in pair):
        name = name.replace(f"{today}-", f"{words[today][1]}-")
    return name

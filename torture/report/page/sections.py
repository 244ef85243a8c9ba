"""Sections of the page that features bring: a template, its values, and its filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from torture.discovery import offered_by_features
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.sensitivity import Sensitivity
from torture.report.reading.store import Store


class Shown(NamedTuple):
    """The page's own values."""

    store: Store
    cells: Sequence[CellFigures]
    """In the axes' order."""
    sensitivity: Sensitivity
    numbers: Mapping[str, int]
    """A cell to its number in the table of all."""


class Priced(NamedTuple):
    """A measured price of one setting beside another."""

    settings: tuple[str, str]
    """The keys of both (`torture.report.figures.pairs.setting_of`)."""
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """The template has the macros `first`, `link` and `section`, each of the values."""

    folder: Path
    template: str
    """Its file in the folder."""
    values: Callable[[Shown], Any]
    filters: Mapping[str, Callable[..., Any]]
    prices: Callable[[Any], Sequence[Priced]] = lambda _values: ()
    """The measured prices among its values."""


@cache
def sections() -> tuple[Section, ...]:
    """Those of all features."""
    return offered_by_features("page", "SECTION")

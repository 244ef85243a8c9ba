"""Surveys: evidence about a cell beside its cuts, which features find. None is in a rate of cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from torture.discovery import offered_by_features

Rows = Callable[[str], Sequence[Sequence[Any]]]
"""Asks the store a question in SQL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey(ABC):
    """The conclusive surveys of one kind of a cell."""

    kind: str
    """The name of its `SurveyKind`."""
    recordings: int
    units: int
    """The surveyed units, e.g. crash states."""
    lost: int
    """Of these, those that lost something acknowledged, or are damaged."""
    recordings_lost: int
    """The recordings with one of these."""
    broken: int = 0
    """The recordings that are worse than guaranteed."""
    inconclusive: int = 0
    """Further recordings, whose surveys say nothing."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The columns of exports: those of its kind."""

    @property
    @abstractmethod
    def loss_in_words(self) -> str:
        """E.g. `2 of 1,680 crash states`."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The whole finding, with the interval of the recordings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveyKind:
    """One kind of survey."""

    name: str
    """Also of the view that has its records (`torture.report.reading.counting_rules`)."""
    origin: str
    """Of its records."""
    title: str
    """Of its column in tables: the units, and that they are lost."""
    legend: str
    """The meaning of this column."""
    columns: tuple[str, ...]
    """Of exports; a cell without a survey has 0 in each."""
    by_cell: Callable[[Rows], Mapping[str, Survey]]
    notes: Callable[[Rows], tuple[str, ...]]
    """Sentences about anything unusual in the records."""
    together: Callable[[Mapping[str, int]], str]
    """The sums of these columns in words; empty where there is nothing to say."""


@cache
def survey_kinds() -> tuple[SurveyKind, ...]:
    """Every kind."""
    return offered_by_features("surveys", "SURVEY")


def surveys_of(rows: Rows) -> dict[str, tuple[Survey, ...]]:
    """The surveys of all cells that have one."""
    found: dict[str, tuple[Survey, ...]] = {}
    for kind in survey_kinds():
        for cell, survey in kind.by_cell(rows).items():
            found[cell] = (*found.get(cell, ()), survey)
    return found

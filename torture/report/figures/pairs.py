"""Compares two cells of the same runs, and every two that differ in one choice.

The answer at a glance: a row for each transport, a column for each sync and SLOG.

A field has a mark for each cell: its fates, filesystems, and settings away from the defaults. A page
shows the marks of one filesystem and of one such setting at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from torture.choices.matrix.cells import AXES, DEFAULTS
from torture.errors import HarnessError
from torture.facts.stats.comparison import SIGNIFICANT, Comparison, compare, corrected, one_sided
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.wording import choice_in_words, choice_rank
from torture.report.reading.store import Store

_FILES = "files"
"""The filesystem of transports that give files: a page shows it beside any other."""
_QUESTION = ("transport", "nfs_export", "sync", "slog", "filesystem", "fate")
"""The axes of the reader's question; all others must have their defaults, or are named."""
USUAL = "usual"
"""The key of marks whose cells have the defaults on all other axes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One choice of a picker: the key in the page's address, and its words."""

    key: str
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One cell in its field."""

    figures: CellFigures
    transport: str
    """The key of its row."""
    others: str
    """The key of its choices on all other axes."""
    harm_rank: int
    """Its place among all marks by their outcome, the worst last; of equal ones the VM that lives on."""

    @property
    def setting(self) -> str:
        """The key of all its choices but the fate."""
        return setting_of(self.figures.axes)

    def choice(self, axis: str) -> str:
        """Its choice on an axis of the question."""
        return self.figures.axes.get(axis, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One SLOG below one setting of sync."""

    sync: str
    slog: Option


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """The fields, and what a reader can pick."""

    rows: tuple[tuple[Option, tuple[tuple[Mark, ...], ...]], ...]
    """A transport, and the marks of its field in each column."""
    columns: tuple[Column, ...]
    pickers: dict[str, tuple[Option, ...]]
    """The options of `transport`, `sync`, `slog`, `filesystem`, `fate` and `others`."""
    chosen: Mark | None
    """The cell of the first sentence, the worst fate of its setting; None without cells."""

    @property
    def syncs(self) -> tuple[tuple[Option, int], ...]:
        """Each setting of sync in words, and the number of its columns."""
        groups = groupby(self.columns, key=lambda column: column.sync)
        return tuple((_option(sync), len(list(own))) for sync, own in groups)

    @staticmethod
    def key_of(mark: Mark, picker: str) -> str:
        """The mark's option of a picker."""
        of_its_own = {"transport": mark.transport, "others": mark.others}
        return of_its_own.get(picker) or mark.choice(picker)

    def is_shown(self, mark: Mark) -> bool:
        """Whether a page shows the mark before anyone picks."""
        chosen = self.chosen
        return (
            chosen is not None
            and mark.others == chosen.others
            and mark.choice("filesystem") in (_shown_filesystem(chosen, self.pickers), _FILES)
        )


def grid_of(cells: Sequence[CellFigures]) -> Grid:
    """The grid of all cells."""
    worst_last = sorted(
        cells,
        key=lambda own: (own.harmfulness, choice_rank("fate", own.axes.get("fate", "")), own.cell),
    )
    marks = [_mark(figures, rank) for rank, figures in enumerate(worst_last)]
    columns = sorted(
        {(mark.choice("sync"), mark.choice("slog")) for mark in marks},
        key=lambda pair: (choice_rank("sync", pair[0]), choice_rank("slog", pair[1])),
    )
    transports = {mark.transport: _transport_in_words(mark) for mark in marks}
    by_field: dict[tuple[str, str, str], list[Mark]] = {}
    for mark in sorted(
        marks, key=lambda mark: (choice_rank("fate", mark.choice("fate")), mark.figures.cell)
    ):
        place = (mark.transport, mark.choice("sync"), mark.choice("slog"))
        by_field.setdefault(place, []).append(mark)
    ordered = sorted(transports, key=lambda key: _transport_rank(key, marks))
    pickers = {
        "transport": tuple(Option(key=key, words=transports[key]) for key in ordered),
        **{axis: _options(axis, marks) for axis in ("sync", "slog", "filesystem", "fate")},
        "others": _others(marks),
    }
    return Grid(
        rows=tuple(
            (option, tuple(tuple(by_field.get((option.key, *pair), ())) for pair in columns))
            for option in pickers["transport"]
        ),
        columns=tuple(Column(sync=sync, slog=_option(slog)) for sync, slog in columns),
        pickers=pickers,
        chosen=_first(marks),
    )


def _mark(figures: CellFigures, harm_rank: int) -> Mark:
    return Mark(
        figures=figures,
        transport=_transport_of(figures.axes),
        others=_others_of(figures.axes),
        harm_rank=harm_rank,
    )


def setting_of(axes: Mapping[str, str]) -> str:
    """The key of all choices but the fate: a cell's speed does not depend on the fate."""
    choices = (axes.get(axis, "") for axis in ("sync", "slog", "filesystem"))
    return "|".join((_transport_of(axes), *choices, _others_of(axes)))


def _transport_of(axes: Mapping[str, str]) -> str:
    export = axes.get("nfs_export", "")
    is_usual = export in ("", DEFAULTS["nfs_export"])
    return axes.get("transport", "") + ("" if is_usual else f"-{export}")


def _others_of(axes: Mapping[str, str]) -> str:
    return " ".join(unusual_choices(axes)) or USUAL


def unusual_choices(axes: Mapping[str, str]) -> list[str]:
    """The choices away from the defaults on the axes that are not the question's."""
    return [
        choice
        for axis, choice in axes.items()
        if axis not in _QUESTION and choice and choice != DEFAULTS.get(axis)
    ]


def _transport_in_words(mark: Mark) -> str:
    words = choice_in_words(mark.choice("transport"))
    export = mark.choice("nfs_export")
    is_usual = export in ("", DEFAULTS["nfs_export"])
    return words if is_usual else f"{words}, {choice_in_words(export)}"


def _transport_rank(key: str, marks: Sequence[Mark]) -> tuple[tuple[int, str], str]:
    first = next(mark for mark in marks if mark.transport == key)
    return choice_rank("transport", first.choice("transport")), key


def axes_rank(axes: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """A key that sorts cells by their choices, in the axes' order, and never by their outcomes.

    A list with the worst interval first has a first interval that covers its rate too seldom.
    """
    unknown = sorted(set(axes) - set(AXES))
    return tuple(
        choice_rank(axis, axes.get(axis) or DEFAULTS.get(axis, "")) for axis in (*AXES, *unknown)
    )


def _option(choice: str) -> Option:
    return Option(key=choice, words=choice_in_words(choice))


def _options(axis: str, marks: Sequence[Mark]) -> tuple[Option, ...]:
    """The choices of the marks; that of files only where there is no other."""
    choices = {mark.choice(axis) for mark in marks}
    if axis == "filesystem" and choices != {_FILES}:
        choices.discard(_FILES)
    return tuple(map(_option, sorted(choices, key=lambda choice: choice_rank(axis, choice))))


def _others(marks: Sequence[Mark]) -> tuple[Option, ...]:
    """The other settings: the usual ones first, then by the number of their cells."""
    counts = Counter(mark.others for mark in marks)
    words = {
        mark.others: ", ".join(map(choice_in_words, unusual_choices(mark.figures.axes)))
        for mark in marks
    }
    words[USUAL] = "the defaults"
    order = sorted(counts, key=lambda key: (key != USUAL, -counts[key], key))
    return tuple(Option(key=key, words=words[key]) for key in order)


def _first(marks: Sequence[Mark]) -> Mark | None:
    """The cell with which a page begins: the usual setting that is first on each axis, its worst fate."""
    if not marks:
        return None
    others = _others(marks)[0].key
    usual = [mark for mark in marks if mark.others == others]
    filesystems = Counter(mark.choice("filesystem") for mark in usual)
    first = min(
        usual,
        key=lambda mark: (
            mark.choice("filesystem") == _FILES,
            -filesystems[mark.choice("filesystem")],
            *(choice_rank(axis, mark.choice(axis)) for axis in _QUESTION),
        ),
    )
    fates = [mark for mark in usual if mark.setting == first.setting]
    return max(fates, key=lambda mark: mark.harm_rank)


def _shown_filesystem(chosen: Mark, pickers: Mapping[str, Sequence[Option]]) -> str:
    of_chosen = chosen.choice("filesystem")
    keys = [option.key for option in pickers["filesystem"]]
    return of_chosen if of_chosen in keys else keys[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The rates of harm of `first` and of `second`: trials that lost or damaged data, or both.

    `corrected_p` is that of its family, one-sided, of the direction in which the two differ.
    """

    axis: str
    """The axis on which the two differ; empty where the same cell is compared between runs."""
    first: CellFigures
    second: CellFigures
    comparison: Comparison
    corrected_p: float

    @property
    def is_worse(self) -> bool:
        """Whether the second rate is significantly higher."""
        return self.corrected_p < SIGNIFICANT and (self.comparison.difference or 0) > 0

    @property
    def is_better(self) -> bool:
        """Whether the second rate is significantly lower."""
        return self.corrected_p < SIGNIFICANT and (self.comparison.difference or 0) < 0


Couple = tuple[str, CellFigures, CellFigures]


def compared(couples: Iterable[Couple], *, is_between_runs: bool = False) -> tuple[Pair, ...]:
    """The pair of each couple (axis, first, second) that has trials, the most significant first.

    All are one family, with both directions (`torture.facts.stats.comparison`). Between runs, one
    question is whether cells got worse, and each direction is a family. The intervals of all
    differences hold at once.
    """
    asked = [couple for couple in couples if couple[1].harm.trials and couple[2].harm.trials]
    worse = [one_sided(first.harm, second.harm) for _, first, second in asked]
    better = [one_sided(second.harm, first.harm) for _, first, second in asked]
    families = [worse, better] if is_between_runs else [worse + better]
    ps = [p for family in families for p in corrected(family)]
    rates = {
        (side if is_between_runs else 0, figures.cell)
        for couple in asked
        for side, figures in enumerate(couple[1:])
    }
    comparisons = [compare(first.harm, second.harm, of=len(rates)) for _, first, second in asked]
    pairs = [
        Pair(
            axis=axis,
            first=first,
            second=second,
            comparison=comparison,
            corrected_p=up if (comparison.difference or 0) > 0 else down,
        )
        for (axis, first, second), comparison, up, down in zip(
            asked, comparisons, ps[: len(asked)], ps[len(asked) :], strict=True
        )
    ]
    return tuple(
        sorted(pairs, key=lambda pair: (pair.corrected_p, -abs(pair.comparison.difference or 0)))
    )


def neighbours(cells: Sequence[CellFigures]) -> list[Couple]:
    """Every two cells that differ on one axis only, as `compared` takes them."""
    couples = []
    by_rest: dict[tuple[str, frozenset[tuple[str, str]]], list[CellFigures]] = {}
    for figures in cells:
        for axis in figures.axes:
            # a cell without a SLOG has no SLOG speed; it differs from one with the usual speed in one
            # choice
            rest = frozenset(
                (key, choice or DEFAULTS.get(key, ""))
                for key, choice in figures.axes.items()
                if key != axis
            )
            by_rest.setdefault((axis, rest), []).append(figures)
    for (axis, _), alike in by_rest.items():
        alike.sort(key=lambda figures: choice_rank(axis, figures.axes[axis]))
        couples += [
            (axis, first, second)
            for place, first in enumerate(alike)
            for second in alike[place + 1 :]
        ]
    return couples


def same_cells(old: Mapping[str, CellFigures], new: Mapping[str, CellFigures]) -> list[Couple]:
    """Each cell that both runs have, as `compared` takes them."""
    return [("", old[name], new[name]) for name in sorted(old.keys() & new.keys())]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellComparison:
    """Two cells of the same runs, compared; no pairs without conclusive trials."""

    pairs: tuple[Pair, ...]
    remarks: tuple[str, ...]
    """Notes on the records."""


def compare_cells(runs: Sequence[Path], first: str, second: str) -> CellComparison:
    """Compare the rates of two cells; raises `HarnessError` for an unknown cell or run."""
    with Store.open(runs) as store:
        cells = {figures.cell: figures for figures in cell_figures(store.tallies())}
        notes = store.notes
    for name in (first, second):
        if name not in cells:
            raise HarnessError(
                f"the runs have no trial of {name}", hint=f"one of: {', '.join(cells)}"
            )
    unresolved = (
        f"{cells[name].unresolved} trials of {name} are inconclusive, and not counted here"
        for name in (first, second)
        if cells[name].unresolved
    )
    pairs = compared([("", cells[first], cells[second])])
    return CellComparison(pairs=pairs, remarks=(*unresolved, *notes))


def pair_in_words(pair: Pair) -> str:
    """The comparison of two cells, as a sentence."""
    if pair.is_worse or pair.is_better:
        change = "higher" if pair.is_worse else "lower"
        return f"harm: {pair.second.cell} is significantly {change} than {pair.first.cell}"
    return "harm: no significant difference"

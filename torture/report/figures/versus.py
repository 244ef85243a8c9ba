"""Compares two nights: which configurations got significantly worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.stats.comparison import SIGNIFICANT, compare, holm
from torture.facts.stats.rates import Rate, in_words, rate_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.pairs import Pair, compared, same_cells
from torture.report.figures.wording import difference_in_words
from torture.report.reading.store import Store
from torture.report.reading.text import escaped


@dataclass(frozen=True, kw_only=True, slots=True)
class Pooled:
    """Trials of one kind among all trials of the cells that both nights have, taken together."""

    meaning: str
    """The statement if there are more of them."""
    old: Rate
    new: Rate
    most_in: str
    """The cell of the new runs with the most of them."""

    @property
    def p(self) -> float:
        """The p of Fisher's test, for this kind alone."""
        return compare(self.old, self.new).p

    @property
    def sentence(self) -> str:
        """The statement, the counts, and the cell with the most."""
        counts = f"{in_words(self.new)}, before {in_words(self.old)}"
        return f"{self.meaning}, and not by chance: {counts}; most in {self.most_in}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """The cells of both nights, compared as one family, and the cells of only one."""

    pairs: tuple[Pair, ...]
    """The most significant difference first."""
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    not_comparable: tuple[str, ...]
    """Cells of both nights in which one side has no conclusive trial."""
    notes: tuple[str, ...]
    pooled: tuple[Pooled, ...]
    """Trials worse than guaranteed, with or without a loss; and inconclusive ones."""
    old_zfs: tuple[str, ...] = ()
    """The versions of OpenZFS of the old runs' trials; most runs have one."""
    new_zfs: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[Pair, ...]:
        """The rates that got significantly worse."""
        return tuple(pair for pair in self.pairs if pair.is_worse)

    @property
    def better(self) -> tuple[Pair, ...]:
        """The rates that got significantly better."""
        return tuple(pair for pair in self.pairs if pair.is_better)

    @property
    def more(self) -> tuple[Pooled, ...]:
        """The kinds of which the new runs have significantly more."""
        corrected = holm([one.p for one in self.pooled])
        return tuple(
            one
            for one, p in zip(self.pooled, corrected, strict=True)
            if p < SIGNIFICANT and one.new.share > one.old.share
        )

    @property
    def has_failed(self) -> bool:
        """Whether the new runs need attention."""
        return bool(self.worse or self.more)

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        return " ".join([self._sentence_of_rates, *(one.sentence for one in self.more)])

    @property
    def _sentence_of_rates(self) -> str:
        if not self.pairs:
            return "Nothing can be compared: no configuration has conclusive trials on both sides."
        cells = len({pair.first.cell for pair in self.pairs})
        if self.worse:
            names = ", ".join(dict.fromkeys(pair.first.cell for pair in self.worse))
            return f"Worse, and not by chance: {names} ({cells} configurations compared)."
        rest = f"; {len(self.better)} rates got better" if self.better else ""
        return f"No configuration of {cells} got significantly worse{rest}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """The statements that the table does not contain."""
        missing = (
            ("only in the old runs", self.only_old),
            ("only in the new runs", self.only_new),
            ("without conclusive trials on one side", self.not_comparable),
        )
        sentences = [f"{what}: {', '.join(names)}" for what, names in missing if names]
        if self.old_zfs and self.new_zfs:
            old, new = (" and ".join(names) for names in (self.old_zfs, self.new_zfs))
            same = f"OpenZFS {old} in both" if old == new else f"old: OpenZFS {old}; new: {new}"
            sentences.insert(0, same)
        return (*sentences, *self.notes)

    def as_markdown(self) -> str:
        """Markdown for a job's summary: the answer, then every rate that differs."""
        lines = [f"**{self.sentence}**", ""]
        if differing := [pair for pair in self.pairs if pair.comparison.difference]:
            lines += [
                "| configuration | rate of | old | new | difference [95 %] | p (Holm) |",
                "| --- | --- | --- | --- | --- | --- |",
            ]
            lines += [
                f"| {escaped(pair.first.cell)} | {pair.what} | {in_words(pair.first_rate)} "
                f"| {in_words(pair.second_rate)} | {difference_in_words(pair.comparison)} "
                f"| {pair.corrected_p:.2g} |"
                for pair in differing
            ]
            lines.append("")
        lines += [f"- {escaped(remark)}" for remark in self.remarks]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellComparison:
    """Two cells of the same runs, compared; no pairs without conclusive trials."""

    pairs: tuple[Pair, ...]
    remarks: tuple[str, ...]
    """Notes on the records."""


def compare_cells(runs: Sequence[Path], first: str, second: str) -> CellComparison:
    """Compare both rates of two cells; raises `HarnessError` for an unknown cell or run."""
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
    """The comparison of one rate of two cells, as a sentence."""
    if pair.is_worse or pair.is_better:
        change = "higher" if pair.is_worse else "lower"
        return f"{pair.what}: {pair.second.cell} is significantly {change} than {pair.first.cell}"
    return f"{pair.what}: no significant difference"


def compare_runs(old: Sequence[Path], new: Sequence[Path]) -> Versus:
    """Compare the cells of both nights; raises `HarnessError` when one of the paths is no run."""
    with Store.open(old) as before, Store.open(new) as after:
        old_cells = {figures.cell: figures for figures in cell_figures(before.tallies())}
        new_cells = {figures.cell: figures for figures in cell_figures(after.tallies())}
        versions = (before.zfs_versions, after.zfs_versions)
        notes = (
            *(f"old: {note}" for note in before.notes),
            *(f"new: {note}" for note in after.notes),
        )
    pairs = compared(same_cells(old_cells, new_cells))
    compared_cells = {pair.first.cell for pair in pairs}
    both = sorted(old_cells.keys() & new_cells.keys())
    return Versus(
        pooled=tuple(
            Pooled(
                meaning=meaning,
                old=_pooled(count, [old_cells[name] for name in both]),
                new=_pooled(count, [new_cells[name] for name in both]),
                most_in=max(both, key=lambda name: count(new_cells[name]), default=""),
            )
            for meaning, count in _POOLED.items()
        ),
        pairs=tuple(sorted(pairs, key=lambda pair: (pair.corrected_p, pair.comparison.p))),
        only_old=tuple(sorted(old_cells.keys() - new_cells.keys())),
        only_new=tuple(sorted(new_cells.keys() - old_cells.keys())),
        not_comparable=tuple(name for name in both if name not in compared_cells),
        notes=notes,
        old_zfs=versions[0],
        new_zfs=versions[1],
    )


def _pooled(count: Callable[[CellFigures], int], cells: Sequence[CellFigures]) -> Rate:
    return rate_of(sum(map(count, cells)), sum(cell.trials for cell in cells))


_POOLED: dict[str, Callable[[CellFigures], int]] = {
    "More trials are worse than theory guarantees": lambda figures: figures.broken,
    "More trials are inconclusive": lambda figures: figures.unresolved,
}
"""The comparison of rates of conclusive trials shows neither of these."""

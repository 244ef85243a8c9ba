"""Two nights compared: which configurations got worse, and not by chance."""

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
    """Trials of one kind among all trials of the cells that both have, the cells taken together."""

    says: str
    """What it means that there are more of them."""
    old: Rate
    new: Rate
    most_in: str
    """The cell of the new runs with the most of them."""

    @property
    def p(self) -> float:
        """Of Fisher's test, for this kind alone."""
        return compare(self.old, self.new).p

    @property
    def sentence(self) -> str:
        """That there are more, how many, and where."""
        counts = f"{in_words(self.new)}, before {in_words(self.old)}"
        return f"{self.says}, and not by chance: {counts}; most in {self.most_in}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """The cells that both have, compared as one family; and those that only one has."""

    pairs: tuple[Pair, ...]
    """The likeliest difference first."""
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    silent: tuple[str, ...]
    """Cells of both in which one side has no conclusive trial: nothing can be said of them."""
    notes: tuple[str, ...]
    pooled: tuple[Pooled, ...]
    """Trials worse than guaranteed, though nothing need be lost; and those that say nothing."""
    old_zfs: tuple[str, ...] = ()
    """The versions of OpenZFS that the old runs' trials are of; most have one."""
    new_zfs: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[Pair, ...]:
        """What got significantly worse."""
        return tuple(pair for pair in self.pairs if pair.is_worse)

    @property
    def better(self) -> tuple[Pair, ...]:
        """What got significantly better."""
        return tuple(pair for pair in self.pairs if pair.is_better)

    @property
    def more(self) -> tuple[Pooled, ...]:
        """Kinds of which the new runs have significantly more."""
        corrected = holm([one.p for one in self.pooled])
        return tuple(
            one
            for one, p in zip(self.pooled, corrected, strict=True)
            if p < SIGNIFICANT and one.new.share > one.old.share
        )

    @property
    def has_failed(self) -> bool:
        """Whether somebody should look at the new runs."""
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
        """What the table does not show."""
        missing = (
            ("only in the old runs", self.only_old),
            ("only in the new runs", self.only_new),
            ("without conclusive trials on one side", self.silent),
        )
        sentences = [f"{what}: {', '.join(names)}" for what, names in missing if names]
        if self.old_zfs and self.new_zfs:
            old, new = (" and ".join(names) for names in (self.old_zfs, self.new_zfs))
            same = f"OpenZFS {old} in both" if old == new else f"old: OpenZFS {old}; new: {new}"
            sentences.insert(0, same)
        return (*sentences, *self.notes)

    def as_markdown(self) -> str:
        """For a job's summary: the answer, then every rate that differs."""
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
class Beside:
    """Two cells of the same runs, from the first to the second; no pairs without conclusive trials."""

    pairs: tuple[Pair, ...]
    remarks: tuple[str, ...]
    """What is to be said of the records."""


def compare_cells(runs: Sequence[Path], first: str, second: str) -> Beside:
    """Both rates of two cells; raises `HarnessError` when there is no such cell or run."""
    with Store.open(runs) as store:
        cells = {figures.cell: figures for figures in cell_figures(store.tallies())}
        notes = store.notes
    for name in (first, second):
        if name not in cells:
            raise HarnessError(f"no trial of {name} is there", hint=f"one of: {', '.join(cells)}")
    untold = (
        f"of {name} {cells[name].untold} trials are inconclusive, which nothing here counts"
        for name in (first, second)
        if cells[name].untold
    )
    pairs = compared([("", cells[first], cells[second])])
    return Beside(pairs=pairs, remarks=(*untold, *notes))


def in_a_sentence(pair: Pair) -> str:
    """What the comparison of two cells says of one rate."""
    if pair.is_worse or pair.is_better:
        change = "higher" if pair.is_worse else "lower"
        return (
            f"{pair.what}: {pair.second.cell} is {change} than {pair.first.cell}, and not by chance"
        )
    return f"{pair.what}: no difference that chance does not explain"


def compare_runs(old: Sequence[Path], new: Sequence[Path]) -> Versus:
    """Compare the cells that both have; raises `HarnessError` when one of the paths is no run."""
    with Store.open(old) as before, Store.open(new) as after:
        old_cells = {figures.cell: figures for figures in cell_figures(before.tallies())}
        new_cells = {figures.cell: figures for figures in cell_figures(after.tallies())}
        versions = (before.zfs_versions, after.zfs_versions)
        notes = (
            *(f"old: {note}" for note in before.notes),
            *(f"new: {note}" for note in after.notes),
        )
    pairs = compared(same_cells(old_cells, new_cells))
    spoken = {pair.first.cell for pair in pairs}
    both = sorted(old_cells.keys() & new_cells.keys())
    return Versus(
        pooled=tuple(
            Pooled(
                says=says,
                old=_pooled(count, [old_cells[name] for name in both]),
                new=_pooled(count, [new_cells[name] for name in both]),
                most_in=max(both, key=lambda name: count(new_cells[name]), default=""),
            )
            for says, count in _POOLED.items()
        ),
        pairs=tuple(sorted(pairs, key=lambda pair: (pair.corrected_p, pair.comparison.p))),
        only_old=tuple(sorted(old_cells.keys() - new_cells.keys())),
        only_new=tuple(sorted(new_cells.keys() - old_cells.keys())),
        silent=tuple(name for name in both if name not in spoken),
        notes=notes,
        old_zfs=versions[0],
        new_zfs=versions[1],
    )


def _pooled(count: Callable[[CellFigures], int], cells: Sequence[CellFigures]) -> Rate:
    return rate_of(sum(map(count, cells)), sum(cell.trials for cell in cells))


_POOLED: dict[str, Callable[[CellFigures], int]] = {
    "More trials are worse than theory guarantees": lambda figures: figures.broken,
    "More trials are inconclusive": lambda figures: figures.untold,
}
"""Comparing rates of conclusive trials tells neither of these."""

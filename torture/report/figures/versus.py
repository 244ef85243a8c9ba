"""Compares two nights: which configurations got significantly worse."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.axes.hypervisor import QEMU
from torture.facts.stats.comparison import corrected, one_sided
from torture.facts.stats.rates import Rate, counts_in_words, in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.pairs import Couple, Pair, compared, same_cells
from torture.report.figures.wording import difference_in_words
from torture.report.reading.loading import Breach
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, printable

_OF_QEMU = re.compile(rf"-({'|'.join(QEMU.names)})(?=-)")
_POOLED_LEVEL = 0.01
"""The level of counts over all cells: the cells' own family may err in 5 % of comparisons already."""


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
    def sentence(self) -> str:
        """The statement, the counts, and the cell with the most."""
        counts = f"{in_words(self.new)}, before {in_words(self.old)}"
        return f"{self.meaning}, and not by chance: {counts}; most in {self.most_in}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """The cells of both nights, compared as one family, and the cells of only one.

    Its surveys are compared like another cell: their rate is of recordings. So is the rate of breaches,
    where both nights have some, and where it is not that of losses.

    The new runs fail for a significantly worse rate, and for more inconclusive trials or breaches of the
    guarantee. They also fail for one breach that no old one was as bad as, and for a cell that vanished.
    """

    pairs: tuple[Pair, ...]
    """The most significant difference first."""
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    not_comparable: tuple[str, ...]
    """Cells of both nights in which one side has no conclusive trial."""
    notes: tuple[str, ...]
    breaches: Mapping[str, tuple[str, ...]]
    """The new runs' trials that broke their guarantee as badly as no old trial of the cell, by cell."""
    is_subset: bool
    """Whether the new runs have fewer cells on purpose."""
    pooled: tuple[Pooled, ...]
    """Trials worse than guaranteed, with or without a loss; and inconclusive ones."""
    versions: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    """A software, and its versions in the old and the new runs' trials; most runs have one."""

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
        asked = [one for one in self.pooled if one.old.trials and one.new.trials]
        ps = corrected([one_sided(one.old, one.new) for one in asked])
        return tuple(one for one, p in zip(asked, ps, strict=True) if p < _POOLED_LEVEL)

    @property
    def has_failed(self) -> bool:
        """Whether the new runs need attention."""
        return bool(self.worse or self.more or self.breaches or self.vanished)

    @property
    def vanished(self) -> tuple[str, ...]:
        """The old runs' cells without a trial in the new runs; none if that is on purpose."""
        return () if self.is_subset else self.only_old

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        more = [one.sentence for one in self.more]
        return " ".join([self._sentence_of_rates, *self._sentences_of_facts, *more])

    @property
    def _sentences_of_facts(self) -> Iterator[str]:
        """The failures that need no statistics."""
        for cell, trials in self.breaches.items():
            others = f" and {len(trials) - 1} more" if len(trials) > 1 else ""
            named = f"{printable(cell)}, in {printable(trials[0])}"
            yield f"A guarantee is broken in a way that no old trial broke it: {named}{others}."
        if self.vanished:
            names = ", ".join(map(printable, self.vanished))
            yield (
                f"Configurations of the old runs have no trial in the new ones: {names}. "
                "Compare a deliberate subset with --subset."
            )

    @property
    def _sentence_of_rates(self) -> str:
        if not self.pairs:
            return "Nothing can be compared: no configuration has conclusive trials on both sides."
        cells = len({pair.first.cell.partition(" (")[0] for pair in self.pairs})
        if self.worse:
            names = ", ".join(dict.fromkeys(pair.first.cell for pair in self.worse))
            return f"Worse, and not by chance: {names} ({cells} configurations compared)."
        rest = f"; {len(self.better)} rates got better" if self.better else ""
        return f"No configuration of {cells} got significantly worse{rest}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """The statements that the table does not contain."""
        missing = (
            ("only in the old runs", () if self.vanished else self.only_old),
            ("only in the new runs", self.only_new),
            ("without conclusive trials on one side", self.not_comparable),
        )
        sentences = [f"{what}: {', '.join(names)}" for what, names in missing if names]
        versions = (line for one in self.versions for line in _versions_in_words(*one))
        return (*versions, *sentences, *self.notes)

    def as_markdown(self) -> str:
        """Markdown for a job's summary: the answer, then every rate that differs."""
        lines = [f"**{escaped(self.sentence)}**", ""]
        if differing := [pair for pair in self.pairs if pair.comparison.difference]:
            lines += [
                "| configuration | old | new | difference [95 %] | p (family) |",
                "| --- | --- | --- | --- | --- |",
            ]
            lines += [
                f"| {escaped(pair.first.cell)} | {counts_in_words(pair.first.harm)} "
                f"| {counts_in_words(pair.second.harm)} | {difference_in_words(pair.comparison)} "
                f"| {pair.corrected_p:.2g} |"
                for pair in differing
            ]
            lines.append("")
        lines += [f"- {escaped(remark)}" for remark in self.remarks]
        return "\n".join(lines) + "\n"


def compare_runs(old: Sequence[Path], new: Sequence[Path], *, is_subset: bool = False) -> Versus:
    """Compare the cells of both nights; `is_subset`: the new one has fewer cells on purpose.

    Raises `HarnessError` when one of the paths is no run, or has no record or an unreadable one. It
    also does for trials of KVM and of emulation: a difference could be that of the accelerators.
    """
    with Store.open(old) as before, Store.open(new) as after:
        for store, paths in ((before, old), (after, new)):
            _refuse_unreadable(store, paths)
        _refuse_two_accelerators(before, after)
        tallies = (before.tallies(), after.tallies())
        old_cells, new_cells = (_by_name(cell_figures(own)) for own in tallies)
        was_broken = [_without_qemu(breach, old_cells) for breach in before.breaches()]
        breaches: dict[str, tuple[str, ...]] = {}
        for breach in (_without_qemu(breach, new_cells) for breach in after.breaches()):
            if not any(map(breach.is_covered_by, was_broken)):
                breaches[breach.cell] = (*breaches.get(breach.cell, ()), breach.trial)
        versions = (
            ("OpenZFS", before.zfs_versions, after.zfs_versions),
            ("Linux", before.kernels, after.kernels),
            ("the hypervisor's QEMU", before.qemus, after.qemus),
        )
        notes = (
            *(f"old: {note}" for note in before.notes),
            *(f"new: {note}" for note in after.notes),
        )
    was, now = _with_surveys(old_cells), _with_surveys(new_cells)
    couples = [*same_cells(was, now), *_breaking(old_cells, new_cells)]
    pairs = compared(couples, is_between_runs=True)
    compared_cells = {pair.first.cell for pair in pairs}
    both = sorted(name for name in was.keys() & now.keys() if name in old_cells)
    # cells that stopped at an answer have other shares of all trials in each run
    is_sequential = any(
        cells[name].harm.is_sequential for cells in (old_cells, new_cells) for name in both
    )
    if is_sequential:
        notes = (*notes, "the runs stopped at an answer: counts over all cells are not compared")
    return Versus(
        pooled=()
        if is_sequential
        else tuple(
            Pooled(
                meaning=meaning,
                old=_pooled(count, [old_cells[name] for name in both]),
                new=_pooled(count, [new_cells[name] for name in both]),
                most_in=max(both, key=lambda name: count(new_cells[name]), default=""),
            )
            for meaning, count in _POOLED.items()
        ),
        pairs=pairs,
        breaches=breaches,
        is_subset=is_subset,
        only_old=tuple(sorted(was.keys() - now.keys())),
        only_new=tuple(sorted(now.keys() - was.keys())),
        not_comparable=tuple(sorted((was.keys() & now.keys()) - compared_cells)),
        notes=notes,
        versions=versions,
    )


def _by_name(cells: Sequence[CellFigures]) -> dict[str, CellFigures]:
    """By name, without the hypervisor's QEMU: a version, like ZFS's. A run with two keeps their names."""
    bare = {own.cell: _OF_QEMU.sub("", own.cell) for own in cells}
    is_one = len({*bare.values()}) == len(bare)
    names = bare if is_one else {name: name for name in bare}
    return {names[own.cell]: replace(own, cell=names[own.cell]) for own in cells}


def _without_qemu(breach: Breach, cells: Container[str]) -> Breach:
    return breach if breach.cell in cells else breach._replace(cell=_OF_QEMU.sub("", breach.cell))


def _with_surveys(cells: Mapping[str, CellFigures]) -> dict[str, CellFigures]:
    """The cells with cuts, and each kind of survey of a cell as one more cell."""
    found = {}
    for name, figures in cells.items():
        if figures.trials:
            found[name] = figures
        for survey in figures.surveys:
            rate = rate_of(survey.recordings_lost, survey.recordings)
            own = replace(figures, cell=f"{name} ({survey.kind})", harm=rate)
            found[own.cell] = own
    return found


def _breaking(old: Mapping[str, CellFigures], new: Mapping[str, CellFigures]) -> Iterator[Couple]:
    """The rates of breaches in the cells where one breach would be no news."""
    for _, before, after in same_cells(old, new):
        is_loss = before.broken == before.harm.events and after.broken == after.harm.events
        if before.broken and after.broken and not is_loss:
            first, second = (
                replace(
                    figures,
                    cell=f"{figures.cell} (broken guarantees)",
                    harm=_like(figures.harm)(figures.broken, figures.trials),
                )
                for figures in (before, after)
            )
            yield "", first, second


def _like(rate: Rate) -> Callable[[int, int], Rate]:
    return sequential_rate_of if rate.is_sequential else rate_of


def _versions_in_words(name: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    if old and new:
        before, after = " and ".join(old), " and ".join(new)
        yield f"{name} {before} in both" if old == new else f"old: {name} {before}; new: {after}"


def _refuse_unreadable(store: Store, paths: Sequence[Path]) -> None:
    """A record that cannot be read may be that of a loss, or of a cell that seems to have vanished."""
    named = ", ".join(map(str, paths))
    hint = f"tools/report {paths[0]}, whose notes name unreadable lines"
    if store.unreadable_lines:
        lines = "1 line" if store.unreadable_lines == 1 else f"{store.unreadable_lines} lines"
        raise HarnessError(f"{lines} of {named} cannot be read", hint=hint)
    if not store.tallies():
        raise HarnessError(f"there is no readable trial in {named}", hint=hint)


def _refuse_two_accelerators(before: Store, after: Store) -> None:
    """A difference between trials of KVM and of emulation may be that of their pace."""
    if len({*before.accelerators, *after.accelerators}) > 1:
        old, new = (" and ".join(store.accelerators) or "none" for store in (before, after))
        raise HarnessError(
            f"KVM and emulation cannot be compared: old {old}, new {new}",
            hint="compare runs of hosts with one accelerator; --accel forces it",
        )


def _pooled(count: Callable[[CellFigures], int], cells: Sequence[CellFigures]) -> Rate:
    return rate_of(sum(map(count, cells)), sum(cell.trials for cell in cells))


_POOLED: dict[str, Callable[[CellFigures], int]] = {
    "More trials are worse than theory guarantees": lambda figures: figures.broken,
    "More trials are inconclusive": lambda figures: figures.unresolved,
}
"""The comparison of rates of conclusive trials shows neither of these."""

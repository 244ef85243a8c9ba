"""Every transport: its cells of one load that theory does not distinguish, taken together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torture.choices.matrix.axes import AXES, DEFAULTS, FILESYSTEM, ROOT, TRANSPORT
from torture.facts.stats.planning import rate_detected
from torture.facts.stats.rates import CONFIDENCE, Rate, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.verdicts import Verdict
from torture.report.figures.answer import Standing, standing_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.reading.store import Store
from torture.report.reading.tally import CellTally, Spread, TrialKind
from torture.report.reading.walks import Walked

_POOLED = (FILESYSTEM.field, ROOT.field)
"""No guarantee depends on these (`torture.choices.matrix.guarantees`), nor on the load; losses do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportRow:
    """The cells of one transport that differ only in the client's filesystem or root, taken together."""

    axes: dict[str, str]
    """Their common choices, the transport included."""
    pooled: tuple[str, ...]
    """The filesystems and roots taken together, by name, without the usual one."""
    cells: tuple[str, ...]
    figures: CellFigures
    rolled_back: Rate
    """The rate of conclusive trials whose disk was a consistent past."""

    @property
    def detectable_from(self) -> float | None:
        """The rate of losses that its cuts detect with 95 % probability; None without conclusive cuts."""
        cuts = self.figures.conclusive
        return rate_detected(cuts, probability=CONFIDENCE) if cuts else None

    @property
    def comparison(self) -> str:
        """The measurement, compared with theory."""
        standing = standing_of(self.figures)
        if standing is Standing.WORSE:
            cuts, broken_walks = self.figures.trials, self.figures.broken_walks
            counts = [f"{self.figures.broken} of {cuts}"] if cuts else []
            if broken_walks:
                counts.append(f"{broken_walks} of {self.figures.walk_counts['walks']} walks")
            return f"{standing} ({', '.join(counts)})"
        if standing is Standing.OPEN:
            unresolved_or_not = self.figures.conclusive + self.figures.unresolved
            return f"{standing} ({self.figures.unresolved} of {unresolved_or_not})"
        return f"better: {standing}" if standing is Standing.NOT_SEEN else str(standing)


def transport_rows(store: Store) -> tuple[tuple[str, tuple[TransportRow, ...]], ...]:
    """The rows of each transport, both in the order of their axes; unknown choices come last."""
    alike: dict[tuple[object, ...], list[CellTally]] = {}
    for tally in store.tallies():
        alike.setdefault((*_place(_common(tally.axes)), tally.guarantee), []).append(tally)
    rows = [_row(store, tallies) for tallies in alike.values()]
    rows.sort(key=lambda row: (_place(row.axes), row.figures.guarantee))
    transports = list(dict.fromkeys(row.axes.get(TRANSPORT.field, "") for row in rows))
    return tuple(
        (name, tuple(row for row in rows if row.axes.get(TRANSPORT.field, "") == name))
        for name in transports
    )


def _common(axes: Mapping[str, str]) -> dict[str, str]:
    return {axis: choice for axis, choice in axes.items() if axis not in _POOLED}


def _place(axes: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """The rank of cells with these choices: by the ranks of the axes and of their choices."""
    order = [*AXES, *sorted(axes.keys() - AXES.keys())]
    return tuple((_place_on(axis, axes.get(axis, "")), axes.get(axis, "")) for axis in order)


def _place_on(axis: str, choice: str) -> int:
    names = AXES[axis].names if axis in AXES else ()
    return names.index(choice) if choice in names else len(names)


def _row(store: Store, tallies: Sequence[CellTally]) -> TransportRow:
    counts: Counter[TrialKind] = Counter()
    for tally in tallies:
        counts.update(tally.counts)
    names = tuple(tally.cell for tally in tallies)
    back = [tally.rollback_ms for tally in tallies if tally.rollback_ms is not None]
    together = replace(
        tallies[0],
        cell=", ".join(names),
        counts=counts,
        is_sequential=any(tally.is_sequential for tally in tallies),
        acknowledged_per_s=None,
        rollback_ms=Spread(
            least=min(spread.least for spread in back),
            median=max(back, key=lambda spread: spread.most).median,
            most=max(spread.most for spread in back),
        )
        if back
        else None,
        worth=store.worth(names),
        acknowledged_in_outage=sum(tally.acknowledged_in_outage for tally in tallies),
        walked=_walked_together([own.walked for own in tallies if own.walked is not None]),
    )
    (figures,) = cell_figures([together])
    rate = sequential_rate_of if together.is_sequential else rate_of
    pooled = {axis: {tally.axes.get(axis, "") for tally in tallies} - {""} for axis in _POOLED}
    return TransportRow(
        axes=_common(tallies[0].axes),
        pooled=tuple(
            choice
            for axis, choices in pooled.items()
            for choice in sorted(choices, key=lambda choice: _place_on(axis, choice))
            if len(choices) > 1 or choice != DEFAULTS.get(axis)
        ),
        cells=names,
        figures=figures,
        rolled_back=rate(
            figures.verdicts.get(Verdict.ROLLED_BACK, 0),
            figures.conclusive,
            later=sum(
                count
                for kind, count in counts.items()
                if kind.verdict is Verdict.ROLLED_BACK
                and kind.first is not None
                and (kind.first.is_corruption or not kind.first.is_loss)
            ),
        ),
    )


def _walked_together(walks: Sequence[Walked]) -> Walked | None:
    """The walks of several cells together; None without any."""
    if not walks:
        return None
    totals = {
        name: sum(getattr(own, name) for own in walks) for name in Walked.__dataclass_fields__
    }
    return Walked(**totals)

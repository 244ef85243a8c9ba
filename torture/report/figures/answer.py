"""The answer at a glance: theory's prediction for each configuration, and the measurement.

Configurations are grouped by theory, which is known before any cut, and never by the outcome of cuts. An
interval over cells chosen since they lost nothing would be too good. In 1,938 simulated campaigns over
cells that lose 10 % of cuts, the bound of such a group held in 791.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import DEFAULTS, FATE, Cell
from torture.facts.stats.rates import (
    CONFIDENCE,
    Rate,
    bound_in_words,
    high_in_words,
    interval_in_words,
)
from torture.facts.stats.sequential import together, with_confidence
from torture.oracles.verdict.guarantee import Guarantee
from torture.report.figures.cell_figures import CellFigures, rates_either_way
from torture.report.figures.pairs import axes_rank, setting_of, unusual_choices
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.wording import (
    choice_in_words,
    duration_in_words,
    either_way_in_words,
    explained_in_words,
)
from torture.report.reading.tally import guarantee_in, survey_kinds

RATE_TO_DETECT = 0.1
"""Fewer cuts than losses of this rate need to show up say nothing about safety."""
CUTS_TO_DETECT = 29
"""The fewest cuts that show a loss of rate `RATE_TO_DETECT` with 95 % probability: log(0.05) / log(0.9).
"""

NOT_INDEPENDENT = "An interval is of cuts, not of operations: one cut loses many of them, or none."
"""Why a number of checked operations makes no interval narrower."""


class Theory(StrEnum):
    """Theory's prediction for a configuration, before any cut."""

    SAFE = "theory says safe"
    GOES_OFFLINE = "theory says the VM's disk may go offline"
    ROLLS_BACK = "theory says it goes back in time"
    LOSES = "theory says it may lose data"
    NONE = "no theory"


class Standing(StrEnum):
    """The measurement, compared with theory."""

    SAFE = "safe, as predicted"
    AS_PREDICTED = "as predicted"
    NOT_SEEN = "not seen yet"
    """Theory predicts a loss, and no trial had one."""
    TOO_FEW = "too few cuts to say"
    """No loss where theory predicts none, in too few cuts to show frequent losses."""
    OPEN = "left open by inconclusive cuts"
    """No loss where theory predicts none, but inconclusive trials may have lost data."""
    WORSE = "worse than predicted"
    LOST = "lost something"
    """A loss where there is no theory."""
    NOTHING_LOST = "nothing lost"
    UNKNOWN = "no answer"
    """No trial was conclusive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The cells with the same prediction, in the axes' order, and their conclusive trials together."""

    theory: Theory
    cells: tuple[CellFigures, ...]
    together: Rate
    """The rate of losses. The interval is that of the mean over cells, weighted by their trials."""

    @property
    def worst_bound(self) -> float:
        """The upper bound of every cell's rate of losses, at 95 % for all cells at once (Bonferroni)."""
        return self._worst_of([cell.harm for cell in self.cut_cells])

    @property
    def worst_bound_if_lost(self) -> float:
        """The same with each cell's unresolved trials counted as lost."""
        return self._worst_of([cell.either_way(cell.harm)[1] for cell in self.cut_cells])

    @property
    def cut_cells(self) -> list[CellFigures]:
        """The cells with a cut; a walk alone bounds no rate of cuts."""
        return [cell for cell in self.cells if cell.trials]

    @property
    def unresolved(self) -> int:
        """How many trials of its cells are inconclusive and may have lost data."""
        return sum(cell.unresolved for cell in self.cells)

    @property
    def either_way(self) -> tuple[Rate, Rate]:
        """Its cells together, with the unresolved trials counted as safe, and as lost."""
        return rates_either_way(self.together, self.unresolved)

    @property
    def longest_rollback_ms(self) -> float | None:
        """The longest rollback of its trials; None without a rollback."""
        most = [cell.rollback_ms.most for cell in self.cells if cell.rollback_ms is not None]
        return max(most, default=None)

    @property
    def worse(self) -> int:
        """How many of its cells are worse than predicted."""
        return self.of_standing(Standing.WORSE)

    def of_standing(self, standing: Standing) -> int:
        """How many of its cells have this standing."""
        return sum(standing_of(cell) is standing for cell in self.cells)

    def _worst_of(self, rates: Sequence[Rate]) -> float:
        confidence = 1 - (1 - CONFIDENCE) / max(1, len(rates))
        return max((with_confidence(rate, confidence).high for rate in rates), default=1.0)

    @property
    def _worst_in_words(self) -> str:
        """The bound without which a mean over unlike cells would hide the worst of them."""
        bound = bound_in_words(self.worst_bound)
        if self.unresolved:
            bound += f", {bound_in_words(self.worst_bound_if_lost)} with inconclusive as lost"
        each = f"each of {configurations(len(self.cut_cells))}"
        return f"{each} at most {bound}, for all of them at once"

    @property
    def sentence(self) -> str:
        """E.g. `theory says safe: 0 of 300 cuts lost or damaged data, at most 1.23 % at 95 %`."""
        rate = self.together
        parts = [f"{self.theory}: {rate.events} of {rate.trials} cuts"]
        if rate.trials == 0:
            of_all = configurations(len(self.cells))
            parts = [f"{self.theory}: no cut of {of_all} was conclusive"]
        elif rate.events == 0:
            parts[0] += f" lost or damaged data, at most {high_in_words(rate)} at 95 %"
        else:
            parts[0] += f" [{interval_in_words(rate)}] lost or damaged data"
            if self.longest_rollback_ms is not None:
                parts[0] += f", up to {duration_in_words(self.longest_rollback_ms)} back"
        if rate.trials and len(self.cut_cells) > 1:
            parts.append(self._worst_in_words)
        counts = Counter[str]()
        for cell in self.cells:
            counts.update(cell.survey_counts)
        parts += filter(None, (kind.together(counts) for kind in survey_kinds()))
        if rate.trials and (either_way := either_way_in_words(rate, self.unresolved)):
            parts.append(either_way)
        for standing in (Standing.WORSE, Standing.NOT_SEEN, Standing.TOO_FEW, Standing.OPEN):
            if count := self.of_standing(standing):
                parts.append(f"{configurations(count)} {standing}")
        return "; ".join(parts)


def configurations(count: int) -> str:
    """E.g. `1 configuration`."""
    return f"{count} configuration" + ("" if count == 1 else "s")


def theory_of(figures: CellFigures) -> Theory:
    """The prediction by the cell's guarantee, which depends on its axes and on no cut."""
    match guarantee_in(figures.guarantee):
        case Guarantee.SAFE:
            return Theory.SAFE
        case Guarantee.MAY_GO_OFFLINE:
            return Theory.GOES_OFFLINE
        case Guarantee.ROLLS_BACK:
            return Theory.ROLLS_BACK
        case Guarantee.LOSES | Guarantee.MAY_LOSE_POOL:
            return Theory.LOSES
        case None:
            return Theory.NONE


def standing_of(figures: CellFigures) -> Standing:
    """The standing of a cell by its cuts, and by its crash states.

    `SAFE` requires that theory predicts no loss, that there are enough cuts, and that no inconclusive
    trial may have lost data.
    """
    if figures.is_worse:
        return Standing.WORSE
    if figures.conclusive == 0:
        return Standing.UNKNOWN
    has_lost = figures.harm.events > 0
    match theory_of(figures):
        case Theory.SAFE | Theory.GOES_OFFLINE:
            if figures.conclusive < CUTS_TO_DETECT:
                return Standing.TOO_FEW
            return Standing.OPEN if figures.is_open else Standing.SAFE
        case Theory.NONE:
            return Standing.LOST if has_lost else Standing.NOTHING_LOST
        case _:
            return Standing.AS_PREDICTED if has_lost else Standing.NOT_SEEN


def tone_of(figures: CellFigures) -> str:
    """The colour of the outcome: `safe`, `back`, `loses`, or `unknown` after too few cuts."""
    if figures.conclusive and figures.corruption.events:
        return "loses"
    if figures.conclusive and figures.loss.events:
        return "back"
    return "safe" if standing_of(figures) is Standing.SAFE else "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class SafeChoice:
    """A setting of the list of what to choose."""

    fates: tuple[CellFigures, ...]
    """Its measured fates, in the axes' order: each is safe, as predicted."""
    lost_at_most: float
    """The upper bound of its fates' rates of losses, which allows for the choice of the list.

    The cells of the list were chosen since they lost nothing. An interval of 95 % for each would cover
    too few of them. Where `R` of `m` cells are chosen, each has an error of `R/m` of 5 %. The expected
    share of wrong bounds in the list then is at most 5 %. Y. Benjamini, D. Yekutieli, "False discovery
    rate-adjusted multiple confidence intervals", J. Amer. Statist. Assoc. 100 (2005).
    """

    @property
    def figures(self) -> CellFigures:
        """The slowest of its fates."""
        return min(self.fates, key=_durable_per_s)


def fastest_safe(cells: Sequence[CellFigures]) -> list[SafeChoice]:
    """The settings whose every measured fate is safe, and that theory calls safe in any fate.

    Those of a known speed, the fastest first.
    """
    settings: dict[str, list[CellFigures]] = {}
    for figures in sorted(cells, key=lambda own: axes_rank(own.axes)):
        settings.setdefault(setting_of(figures.axes), []).append(figures)
    safe = [
        fates
        for fates in settings.values()
        if all(
            standing_of(figures) is Standing.SAFE and _durable_per_s(figures) for figures in fates
        )
        and _is_safe_in_any_fate(fates[0])
    ]
    safe.sort(key=lambda fates: (-min(map(_durable_per_s, fates)), fates[0].cell))
    known = sum(theory_of(figures) is Theory.SAFE and figures.conclusive > 0 for figures in cells)
    confidence = 1 - (1 - CONFIDENCE) * sum(map(len, safe)) / max(1, known)
    return [
        SafeChoice(
            fates=tuple(fates),
            lost_at_most=max(with_confidence(own.harm, confidence).high for own in fates),
        )
        for fates in safe
    ]


def _durable_per_s(figures: CellFigures) -> float:
    return figures.worth.durable_per_s or 0.0


def _is_safe_in_any_fate(figures: CellFigures) -> bool:
    """Whether theory promises as much of the fates that were not measured."""
    for fate in FATE.names:
        with suppress(ValueError):  # a fate that means nothing with the other choices
            cell = Cell.parse(figures.cell).but(**{FATE.field: fate})
            if guarantee_of(cell) is not Guarantee.SAFE:
                return False
    return True


def answer(cells: Sequence[CellFigures]) -> tuple[Group, ...]:
    """The groups with cells, from safe to lossy; each in the axes' order."""
    groups = []
    for theory in Theory:
        own = [figures for figures in cells if theory_of(figures) is theory]
        if not own:
            continue
        own.sort(key=lambda figures: (axes_rank(figures.axes), figures.cell))
        groups.append(
            Group(
                theory=theory,
                cells=tuple(own),
                together=together([figures.harm for figures in own]),
            )
        )
    return tuple(groups)


_WOULD_BE_SEEN = "flush-dropped"
"""The planted fault of the sentence: a disk whose cache lies now and then is what people fear."""


def question_in_words(figures: CellFigures) -> str:
    """E.g. `Over iSCSI with sync=always, no SLOG, btrfs, the VM dies too`."""
    axes = figures.axes
    choices = [axes.get(axis, "") for axis in ("sync", "slog", "filesystem", "fate")]
    if axes.get("nfs_export") not in (None, DEFAULTS["nfs_export"]):
        choices.insert(0, axes["nfs_export"])
    words = [choice_in_words(one) for one in (*choices, *unusual_choices(axes)) if one]
    if explained := explained_in_words(axes.get("slog", "")):
        place = words.index(choice_in_words(axes["slog"]))
        words[place] += f" ({explained})"
    return f"Over {choice_in_words(axes.get('transport', '?'))} with {', '.join(words)}"


def answer_in_words(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """The whole answer: `brief_in_words`, then `rest_in_words`."""
    parts = (brief_in_words(figures), rest_in_words(figures, sensitivity))
    return "; ".join(filter(None, parts)) + "."


def brief_in_words(figures: CellFigures) -> str:
    """E.g. `nothing acknowledged was lost in 42 cuts [at most 8.4 %; 14,210 operations checked]`.

    A breach of theory follows.

    The bound is that of the cell alone: the upper end of its 95 % interval.
    """
    harm = figures.harm
    if not harm.trials and figures.trials:
        return f"none of {figures.trials} cuts was conclusive"
    cuts = f"{harm.trials} cut" + ("" if harm.trials == 1 else "s")
    if not figures.trials:
        said = "no power cut was measured"
    elif not harm.events:
        bound = f"at most {high_in_words(harm)}; {checked_in_words(figures)}"
        said = f"nothing acknowledged was lost in {cuts} [{bound}]"
    else:
        did = "damaged data or lost acknowledged writes"
        if not figures.corruption.events:
            did = "lost acknowledged writes"
        said = f"{harm.events} of {cuts} {did} [{interval_in_words(harm)}]"
        if figures.rollback_ms is not None:
            back = duration_in_words(figures.rollback_ms.most)
            is_all = not figures.corruption.events
            undamaged = f"; where nothing was damaged, up to {back} of writes were lost"
            said += f", up to {back} of them" if is_all else undamaged
    if figures.broken:
        said += f"; {figures.broken} worse than theory guarantees ({figures.guarantee})"
    elif figures.is_worse:
        lost = " and ".join(one.loss_in_words for one in figures.surveys)
        said += f", but {lost} lost something: worse than theory guarantees ({figures.guarantee})"
    return said


def checked_in_words(figures: CellFigures) -> str:
    """E.g. `14,210 operations checked`."""
    return f"{figures.checked:,} operation{'' if figures.checked == 1 else 's'} checked"


def rest_in_words(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """How sure the brief answer is: inconclusive cuts, a fault's share, crash states; may be empty."""
    harm = figures.harm
    parts = []
    if harm.trials and (unresolved := either_way_in_words(harm, figures.unresolved)):
        parts.append(unresolved)
    if harm.trials and not harm.events and (seen := would_be_seen(figures, sensitivity)):
        parts.append(seen)
    parts += [survey.in_words for survey in figures.surveys]
    return "; ".join(parts)


def would_be_seen(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """The share of runs with so many cuts that detect a lying cache; empty where not measured."""
    for fault in (*sensitivity.faults, *sensitivity.on_transports):
        if fault.name == _WOULD_BE_SEEN and (alike := fault.cuts_like([figures])):
            seen = fault.in_words(alike)
            return f'{seen} of such runs would have detected the planted fault "{fault.words}"'
    return ""

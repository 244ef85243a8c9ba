"""The answer at a glance, in the right words for every outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import AXES, Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import bound_in_words, interval_in_words, printed_bounds, rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.report.figures.answer import (
    Group,
    Standing,
    Theory,
    answer,
    standing_of,
    theory_of,
    tone_of,
)
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import compared, neighbours
from torture.report.figures.wording import (
    cell_in_words,
    choice_in_words,
    common_in_words,
    duration_in_words,
    varying_axes,
)
from torture.report.reading.tally import Spread

ALWAYS = "iscsi-always-noslog-btrfs-bothdie"
ALWAYS_PLP = "iscsi-always-plp-btrfs-bothdie"
STANDARD = "iscsi-standard-noslog-btrfs-nasonly"
DISABLED = "iscsi-disabled-noslog-btrfs-bothdie"


def figures(
    name: str, *, intact: int = 0, rolled_back: int = 0, corrupted: int = 0, inconclusive: int = 0
) -> CellFigures:
    conclusive = intact + rolled_back + corrupted
    cell = Cell.parse(name)
    guarantee = guarantee_of(cell)
    verdicts = {
        Verdict.INTACT: intact, Verdict.ROLLED_BACK: rolled_back, Verdict.CORRUPTED: corrupted,
        Verdict.INCONCLUSIVE: inconclusive,
    }  # fmt: skip
    return CellFigures(
        cell=name,
        axes=cell.axes,
        guarantee=guarantee,
        trials=conclusive + inconclusive,
        verdicts={verdict: count for verdict, count in verdicts.items() if count},
        loss=rate_of(rolled_back + corrupted, conclusive),
        corruption=rate_of(corrupted, conclusive),
        harm=rate_of(rolled_back + corrupted, conclusive),
        broken=sum(count for verdict, count in verdicts.items() if guarantee.is_broken_by(verdict)),
        acknowledged_per_s=10.0,
        rollback_ms=Spread(least=40, median=50, most=700) if rolled_back else None,
    )


@pytest.mark.parametrize(
    ("name", "seen", "standing", "tone"),
    [
        (ALWAYS, {"intact": 29}, Standing.SAFE, "safe"),
        (ALWAYS, {"intact": 28}, Standing.TOO_FEW, "unknown"),
        (ALWAYS, {"intact": 28, "inconclusive": 9}, Standing.TOO_FEW, "unknown"),
        (ALWAYS, {"intact": 999, "inconclusive": 1}, Standing.OPEN, "unknown"),
        (ALWAYS, {"intact": 99, "rolled_back": 1}, Standing.WORSE, "back"),
        (ALWAYS, {"inconclusive": 3}, Standing.UNKNOWN, "unknown"),
        (STANDARD, {"intact": 999}, Standing.NOT_SEEN, "unknown"),
        (STANDARD, {"intact": 9, "corrupted": 1}, Standing.AS_PREDICTED, "loses"),
        (DISABLED, {"intact": 1}, Standing.NOT_SEEN, "unknown"),
        (DISABLED, {"rolled_back": 1}, Standing.AS_PREDICTED, "back"),
        (DISABLED, {"rolled_back": 5, "corrupted": 1}, Standing.WORSE, "loses"),
    ],
)
def test_a_cell_is_compared_with_theory(
    name: str, seen: dict[str, int], standing: Standing, tone: str
) -> None:
    found = figures(name, **seen)
    assert standing_of(found) is standing
    assert tone_of(found) == tone


@pytest.mark.parametrize(
    ("seen", "standing"),
    [({"intact": 300}, Standing.NOTHING_LOST), ({"rolled_back": 1}, Standing.LOST)],
)
def test_a_cell_without_theory_has_only_its_outcome(
    seen: dict[str, int], standing: Standing
) -> None:
    found = replace(figures(ALWAYS, **seen), guarantee="of another version", broken=0)
    assert theory_of(found) is Theory.NONE
    assert standing_of(found) is standing


def test_the_answer_says_how_sure_it_is() -> None:
    sentences = [
        group.sentence
        for group in answer(
            [
                figures(STANDARD, intact=63, corrupted=37),
                figures(ALWAYS, intact=300),
                figures(DISABLED, rolled_back=20),
            ]
        )
    ]
    assert sentences == [
        "theory says safe: 0 of 300 cuts lost or damaged data, at most 1.23 % at 95 %",
        "theory says it goes back in time: 20 of 20 cuts [83-100 %] lost or damaged data, "
        "up to 0.7 s back",
        "theory says it may lose data: 37 of 100 cuts [27-48 %] lost or damaged data",
    ]


def test_a_group_has_the_bound_that_all_its_cells_show_at_once() -> None:
    [group] = answer([figures(ALWAYS, intact=20), figures(ALWAYS_PLP, intact=300)])
    assert "0 of 320 cuts" in group.sentence
    assert group.worst_bound == rate_of(0, 20, confidence=0.975).high
    assert "each of 2 configurations at most 20 %" in group.sentence
    assert "1 configuration too few cuts to say" in group.sentence


def test_outcomes_never_move_a_cell_to_another_group() -> None:
    """A cell that theory calls lossy is in no safe group, whatever was seen; a bad safe one stays."""
    groups = answer([figures(STANDARD, intact=72), figures(ALWAYS, intact=71, corrupted=1)])
    assert [group.theory for group in groups] == [Theory.SAFE, Theory.LOSES]
    assert "1 configuration worse than predicted" in groups[0].sentence
    assert "1 of 72 cuts" in groups[0].sentence
    assert "0 of 72 cuts lost or damaged data, at most" in groups[1].sentence
    assert "1 configuration not seen yet" in groups[1].sentence


def test_the_mean_of_several_cells_never_stands_without_the_bound_on_the_worst() -> None:
    """Also where one of them lost something; the cells are in the axes' order."""
    [group] = answer([figures(ALWAYS_PLP, intact=39, corrupted=1), figures(ALWAYS, intact=40)])
    worst = bound_in_words(rate_of(1, 40, confidence=0.975).high)
    assert f"1 of 80 cuts [{interval_in_words(rate_of(1, 80))}] lost" in group.sentence
    assert f"; each of 2 configurations at most {worst}, for all of them at once;" in group.sentence
    assert [cell.cell for cell in group.cells] == [ALWAYS, ALWAYS_PLP]


def test_nothing_conclusive_is_no_safety() -> None:
    [group] = answer([figures(ALWAYS, inconclusive=4)])
    assert group.sentence == "theory says safe: no cut of 1 configuration was conclusive"


def test_no_cells_no_answer() -> None:
    assert answer([]) == ()


CAMPAIGNS = 10_000
MIXTURES = ((0.0, 0.002, 0.01, 0.05, 0.1, 0.3, 0.6, 1.0), (0.002, 0.01), (0.1,), (0.3,))
"""True rates, mixed over the cells of a campaign, whatever theory says of them."""


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("cuts", [1, 12, 40])
def test_the_first_screens_intervals_cover_the_true_rate_over_whole_campaigns(
    cuts: int, mixture: tuple[float, ...]
) -> None:
    """Also the bound on the worst cell, which is chosen after the cuts; all of it as it is printed."""
    draw = np.random.default_rng(cuts)
    cells = [cell for cell in cells_of(Matrix.DEFAULT) if guarantee_of(cell) is Guarantee.SAFE]
    rates = np.array([mixture[place % len(mixture)] for place in range(len(cells))])
    lost = draw.binomial(cuts, rates, size=(CAMPAIGNS, len(cells)))
    own = table(cuts, lambda events: printed_bounds(rate_of(events, cuts)))
    together = table(
        cuts * len(cells), lambda events: printed_bounds(rate_of(events, cuts * len(cells)))
    )
    worst = table(cuts, lambda most: (0.0, bound_on_the_worst(cells, most, cuts)))
    for what, true_rates, bounds, events in (
        ("own", rates, own, lost),
        ("together", rates.mean(), together, lost.sum(axis=1)),
        ("worst", rates.max(), worst, lost.max(axis=1)),
    ):
        low, high = bounds[events].T
        held = np.mean((true_rates >= low.T) & (true_rates <= high.T))
        assert held >= 0.95, (what, held)


def table(events_max: int, bounds: Callable[[int], tuple[float, float]]) -> NDArray[np.float64]:
    """The printed bound of each possible number of events."""
    return np.array([bounds(events) for events in range(events_max + 1)])


def bound_on_the_worst(cells: Sequence[Cell], most: int, cuts: int) -> float:
    alike = tuple(figures(cell.name, intact=cuts - most, corrupted=most) for cell in cells)
    return Group(theory=Theory.SAFE, cells=alike, together=rate_of(0, 1)).worst_bound


@given(st.lists(st.sampled_from(cells_of(Matrix.FULL)), unique=True, min_size=2, max_size=12))
def test_no_two_cells_have_the_same_words(cells: list[Cell]) -> None:
    axes = [cell.axes for cell in cells]
    varying = varying_axes(axes)
    assert len({cell_in_words(choices, varying) for choices in axes}) == len(cells)


def test_common_choices_are_stated_once() -> None:
    axes = [Cell.parse(name).axes for name in (ALWAYS, DISABLED)]
    varying = varying_axes(axes)
    assert varying == ("sync",)
    assert cell_in_words(axes[0], varying) == "sync=always, no SLOG, the VM dies too"
    assert (
        common_in_words(axes, varying)
        == "iSCSI, one data disk, data disks with volatile cache, btrfs, the ledger load"
    )


def test_every_choice_but_plain_names_has_words() -> None:
    plain = {"btrfs", "ext4", "xfs"}
    unsaid = {
        choice
        for axis in AXES.values()
        for choice in axis.names
        if choice_in_words(choice) == choice
    }
    assert unsaid <= plain


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0.4, "0 ms"), (85, "85 ms"), (99.4, "99 ms"), (700, "0.7 s"), (5103, "5.1 s"), (12_400, "12 s")],
)  # fmt: skip
def test_durations(ms: float, words: str) -> None:
    assert duration_in_words(ms) == words


def pairs_of(*names: str) -> Sequence[tuple[str, str, str]]:
    couples = neighbours([figures(name, intact=1) for name in names])
    return [(axis, first.cell, second.cell) for axis, first, second in couples]


def test_neighbours_differ_in_one_choice() -> None:
    plp = "iscsi-always-plp-btrfs-bothdie"
    optane = "iscsi-always-plp-optane-btrfs-bothdie"
    assert pairs_of(ALWAYS, plp) == [("slog", ALWAYS, plp)]
    assert pairs_of(plp, optane) == [("slog_class", plp, optane)]
    assert pairs_of(ALWAYS, optane) == []
    assert pairs_of(ALWAYS, STANDARD) == []
    assert pairs_of(ALWAYS, DISABLED) == [("sync", ALWAYS, DISABLED)]


def test_a_family_is_corrected_as_one() -> None:
    lossy, safe = figures(DISABLED, rolled_back=6, intact=4), figures(ALWAYS, intact=10)
    [alone] = compared([("sync", safe, lossy)])
    many = compared([("sync", safe, lossy)] * 5)
    assert alone.is_worse
    assert many[0].corrected_p > alone.corrected_p
    assert not compared([("sync", safe, figures(DISABLED, inconclusive=3))])


def test_the_intervals_of_all_differences_hold_at_once() -> None:
    """So they are wider where more rates are compared; the same cell in another pair adds none."""
    lossy, safe = figures(DISABLED, rolled_back=6, intact=4), figures(ALWAYS, intact=10)
    other = figures(ALWAYS_PLP, intact=10)
    [alone, *_], [same, *_], [many, *_] = (
        compared(couples)
        for couples in (
            [("sync", safe, lossy)],
            [("sync", safe, lossy)] * 5,
            [("sync", safe, lossy), ("sync", other, lossy)],
        )
    )
    assert alone.comparison == same.comparison
    assert many.comparison.low < alone.comparison.low < alone.comparison.high
    assert alone.comparison.high < many.comparison.high

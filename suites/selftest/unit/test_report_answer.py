"""The answer at a glance, in the right words for whatever was seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.axes.sweeps import Matrix
from torture.matrix.axes import AXES
from torture.matrix.cells import Cell, cells_of
from torture.report.figures.answer import Outcome, answer, outcome_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.heatmap import facets_of
from torture.report.figures.pairs import compared, neighbours
from torture.report.figures.wording import (
    cell_in_words,
    choice_in_words,
    common_in_words,
    duration_in_words,
    varying_axes,
)
from torture.report.reading.tally import Spread
from torture.stats.rates import rate_of
from torture.verdict.verdicts import Verdict

ALWAYS = "iscsi-always-noslog-btrfs-bothdie"
STANDARD = "iscsi-standard-noslog-btrfs-nasonly"
DISABLED = "iscsi-disabled-noslog-btrfs-bothdie"


def figures(
    name: str, *, intact: int = 0, rolled_back: int = 0, corrupted: int = 0, inconclusive: int = 0
) -> CellFigures:
    conclusive = intact + rolled_back + corrupted
    verdicts = {
        Verdict.INTACT: intact, Verdict.ROLLED_BACK: rolled_back, Verdict.CORRUPTED: corrupted,
        Verdict.INCONCLUSIVE: inconclusive,
    }  # fmt: skip
    return CellFigures(
        cell=name,
        axes=Cell.parse(name).axes,
        guarantee="safe",
        trials=conclusive + inconclusive,
        verdicts={verdict: count for verdict, count in verdicts.items() if count},
        loss=rate_of(rolled_back + corrupted, conclusive),
        corruption=rate_of(corrupted, conclusive),
        broken=0,
        acknowledged_per_s=10.0,
        rollback_ms=Spread(least=40, median=50, most=700) if rolled_back else None,
    )


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        ({"intact": 9}, Outcome.SAFE),
        ({"intact": 9, "inconclusive": 1}, Outcome.SAFE),
        ({"intact": 9, "rolled_back": 1}, Outcome.ROLLS_BACK),
        ({"intact": 9, "rolled_back": 5, "corrupted": 1}, Outcome.LOSES),
        ({"inconclusive": 3}, Outcome.UNKNOWN),
    ],
)
def test_a_cell_is_called_by_its_worst_trial(seen: dict[str, int], outcome: Outcome) -> None:
    assert outcome_of(figures(ALWAYS, **seen)) is outcome


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
        "safe so far: 0 of 300 cuts lost acknowledged data, at most 1.23 % at 95 %",
        "goes back in time: 20 of 20 cuts [83-100 %] lost the last writes, up to 0.7 s; consistent",
        "loses data: 37 of 100 cuts [27-48 %] lost or damaged acknowledged data",
    ]


def test_several_safe_cells_say_what_each_of_them_shows() -> None:
    [group] = answer([figures(ALWAYS, intact=20), figures(STANDARD, intact=300)])
    assert "0 of 320 cuts" in group.sentence
    assert "each of 2 configurations at most 17 %" in group.sentence


def test_nothing_conclusive_is_no_safety() -> None:
    [group] = answer([figures(ALWAYS, inconclusive=4)])
    assert group.sentence == "no answer: no trial of 1 configurations was conclusive"


def test_no_cells_no_answer() -> None:
    assert answer([]) == ()


@given(st.lists(st.sampled_from(cells_of(Matrix.FULL)), unique=True, min_size=1))
def test_every_cell_has_one_place_in_the_matrix(cells: list[Cell]) -> None:
    known = [figures(cell.name, intact=1) for cell in cells]
    facets = facets_of(known, varying_axes([tallied.axes for tallied in known]))
    placed = [
        field for facet in facets for _, row in facet.rows for field in row if field is not None
    ]
    assert sorted(field.cell for field in placed) == sorted(cell.name for cell in cells)
    for facet in facets:
        assert {len(row) for _, row in facet.rows} == {len(facet.columns)}


@given(st.lists(st.sampled_from(cells_of(Matrix.FULL)), unique=True, min_size=2, max_size=12))
def test_no_two_cells_are_said_alike(cells: list[Cell]) -> None:
    axes = [cell.axes for cell in cells]
    varying = varying_axes(axes)
    assert len({cell_in_words(choices, varying) for choices in axes}) == len(cells)


def test_what_is_the_same_is_said_once() -> None:
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
    [alone, _] = compared([("sync", safe, lossy)])
    many = compared([("sync", safe, lossy)] * 5)
    assert alone.what == "acknowledged loss"
    assert alone.is_worse
    assert many[0].corrected_p > alone.corrected_p
    assert not compared([("sync", safe, figures(DISABLED, inconclusive=3))])

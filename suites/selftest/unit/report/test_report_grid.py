"""The grid that answers first, and the sentence of a cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.report.test_report_answer import ALWAYS, DISABLED, STANDARD, figures
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import rate_of
from torture.report.figures.answer import answer_in_words, fastest_safe, question_in_words
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import USUAL, axes_rank, grid_of
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.reading.tally import Worth

NFS3 = "nfs3-standard-noslog-files-bothdie"
ASYNC = "nfs3-export_async-standard-noslog-files-bothdie"
CELLS = st.lists(st.sampled_from(cells_of(Matrix.FULL)), unique=True, min_size=1)


@given(CELLS)
def test_every_cell_has_one_mark_and_its_choices_find_it(cells: list[Cell]) -> None:
    grid = grid_of([figures(cell.name, intact=1) for cell in cells])
    marks = [mark for _, fields in grid.rows for field in fields for mark in field]
    assert sorted(mark.figures.cell for mark in marks) == sorted(cell.name for cell in cells)
    assert {len(fields) for _, fields in grid.rows} == {len(grid.columns)}
    assert sum(width for _, width in grid.syncs) == len(grid.columns)
    picked = {tuple(grid.key_of(mark, name) for name in grid.pickers) for mark in marks}
    assert len(picked) == len(marks), "two cells stand behind the same choices"
    assert grid.chosen is not None
    assert grid.is_shown(next(mark for mark in marks if mark is grid.chosen))


def test_the_marks_of_unusual_settings_and_other_filesystems_wait_until_they_are_picked() -> None:
    names = (
        ALWAYS,
        ALWAYS.replace("btrfs", "xfs"),
        ALWAYS.replace("noslog", "noslog-raidz1"),
        NFS3,
    )
    grid = grid_of([figures(name, intact=1) for name in (*names, DISABLED)])
    shown = {
        mark.figures.cell
        for _, fields in grid.rows
        for field in fields
        for mark in field
        if grid.is_shown(mark)
    }
    assert shown == {ALWAYS, DISABLED, NFS3}
    assert [option.key for option in grid.pickers["filesystem"]] == ["btrfs", "xfs"]
    assert [option.key for option in grid.pickers["others"]] == [USUAL, "raidz1"]


def test_an_export_with_async_has_a_row_of_its_own() -> None:
    grid = grid_of([figures(name, intact=1) for name in (NFS3, ASYNC)])
    assert [option.words for option, _ in grid.rows] == ["NFSv3", "NFSv3, export async"]


def test_no_cells_make_an_empty_grid() -> None:
    grid = grid_of([])
    assert (grid.rows, grid.columns, grid.chosen) == ((), (), None)


def test_the_question_names_every_choice_away_from_the_defaults() -> None:
    assert question_in_words(figures(ALWAYS)) == (
        "Over iSCSI with sync=always, no SLOG, btrfs, the VM dies too"
    )
    assert question_in_words(figures(ASYNC)).startswith("Over NFSv3 with export async, ")
    mirrored = figures(ALWAYS.replace("noslog", "noslog-mirrored"))
    assert question_in_words(mirrored).endswith(", mirrored data disks")


@pytest.mark.parametrize(
    ("name", "counts", "said"),
    [
        (ALWAYS, {"intact": 42}, "nothing acknowledged was lost in 42 cuts [at most 8.41 %]; "),
        (ALWAYS, {"intact": 1}, "nothing acknowledged was lost in 1 cut [at most 98 %]; "),
        (ALWAYS, {"inconclusive": 3}, "none of 3 cuts was conclusive."),
        (
            STANDARD,
            {"intact": 11, "rolled_back": 9},
            "9 of 20 cuts lost acknowledged writes [23-69 %], up to 0.7 s of them.",
        ),
        (
            STANDARD,
            {"intact": 11, "rolled_back": 8, "corrupted": 1},
            "9 of 20 cuts damaged data or lost acknowledged writes [23-69 %]; where nothing was "
            "damaged, up to 0.7 s of writes were lost",
        ),
        (
            ALWAYS,
            {"intact": 19, "rolled_back": 1},
            "; 1 worse than theory guarantees (safe).",
        ),
        (
            ALWAYS,
            {"intact": 20, "inconclusive": 2},
            "; 2 inconclusive: as safe 0/22 0 % [0-16 %], as lost 2/22 ",
        ),
    ],
)
def test_an_answer_has_its_bound_and_the_trials_against_it(
    name: str, counts: dict[str, int], said: str
) -> None:
    assert said in answer_in_words(figures(name, **counts), measured_sensitivity())


def test_an_answer_of_none_seen_says_which_fault_would_have_been_seen() -> None:
    said = answer_in_words(figures(ALWAYS, intact=42), measured_sensitivity())
    assert said.endswith(
        'more than 99.99 % of such runs would have detected the planted fault "a disk drops one '
        'flush in 20".'
    )
    assert "planted" not in answer_in_words(
        figures(STANDARD, rolled_back=3), measured_sensitivity()
    )


@given(CELLS)
def test_a_list_is_ordered_by_choices_and_never_by_outcomes(cells: list[Cell]) -> None:
    one = [figures(cell.name, intact=1) for cell in cells]
    other = [figures(cell.name, corrupted=place + 1) for place, cell in enumerate(cells)]
    order = [sorted(both, key=lambda own: axes_rank(own.axes)) for both in (one, other)]
    assert [own.cell for own in order[0]] == [own.cell for own in order[1]]


def with_speed(cell: str, per_s: float, **counts: int) -> CellFigures:
    return replace(figures(cell, **counts), worth=Worth(durable_per_s=per_s))


PLP = ALWAYS.replace("noslog", "plp")
ALWAYS_LIVES = ALWAYS.replace("bothdie", "nasonly")
PLP_LIVES = PLP.replace("bothdie", "nasonly")
STANDARD_DIES = STANDARD.replace("nasonly", "bothdie")


def test_the_first_answer_is_the_worst_fate_that_was_measured() -> None:
    """Not the first one of the axis, a safe one that hides a losing one."""
    grid = grid_of([figures(STANDARD_DIES, intact=29), figures(STANDARD, intact=3, corrupted=7)])
    assert grid.chosen is not None
    assert grid.chosen.figures.cell == STANDARD
    # of equal outcomes the VM that lives on
    grid = grid_of([figures(ALWAYS_LIVES, intact=29), figures(ALWAYS, intact=29)])
    assert grid.chosen is not None
    assert grid.chosen.figures.cell == ALWAYS_LIVES


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({"intact": 9, "corrupted": 1}, {"rolled_back": 10}),
        ({"rolled_back": 6, "intact": 4}, {"rolled_back": 5, "intact": 5}),
        ({"rolled_back": 1, "intact": 99}, {"intact": 3}),
        ({"intact": 3}, {"intact": 29}),
    ],
)
def test_damage_is_worse_than_a_loss_and_a_loss_than_few_cuts(
    worse: dict[str, int], better: dict[str, int]
) -> None:
    assert figures(STANDARD, **worse).harmfulness > figures(STANDARD, **better).harmfulness


def test_the_recommended_choices_stand_by_their_slowest_fate() -> None:
    slow = [with_speed(ALWAYS, 10.0, intact=29), with_speed(ALWAYS_LIVES, 50.0, intact=29)]
    fast = [with_speed(PLP, 99.0, intact=29), with_speed(PLP_LIVES, 20.0, intact=30)]
    chosen = fastest_safe([*slow, *fast])
    assert [choice.figures for choice in chosen] == [fast[1], slow[0]]
    assert [choice.fates for choice in chosen] == [tuple(fast), tuple(slow)]


@pytest.mark.parametrize(
    "twin",
    [
        with_speed(ALWAYS_LIVES, 10.0, intact=28, rolled_back=1),
        with_speed(ALWAYS_LIVES, 10.0, intact=28),
        with_speed(ALWAYS_LIVES, 10.0, intact=29, inconclusive=1),
        replace(with_speed(ALWAYS_LIVES, 10.0, intact=29), broken=1),
    ],
    ids=["lost", "too few", "open", "worse"],
)
def test_a_setting_with_a_fate_that_is_not_safe_is_not_recommended(twin: CellFigures) -> None:
    assert fastest_safe([with_speed(ALWAYS, 10.0, intact=29), twin]) == []


def test_a_setting_whose_other_fate_theory_calls_lossy_is_not_recommended() -> None:
    """Also where that fate was never measured."""
    assert fastest_safe([with_speed(STANDARD_DIES, 10.0, intact=99)]) == []


def test_the_bounds_of_choices_allow_for_the_choosing() -> None:
    """Two of three safe cells are chosen since they lost nothing, so each may err in 2/3 of 5 %."""
    safe = [with_speed(name, 10.0, intact=29) for name in (ALWAYS, ALWAYS_LIVES)]
    lossy = with_speed(PLP, 10.0, intact=28, rolled_back=1)
    bounds = {choice.lost_at_most for choice in fastest_safe([*safe, lossy])}
    assert bounds == {rate_of(0, 29, confidence=1 - 0.05 * 2 / 3).high}
    assert {choice.lost_at_most for choice in fastest_safe(safe)} == {rate_of(0, 29).high}

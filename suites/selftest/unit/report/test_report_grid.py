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
from torture.report.figures.answer import fastest_safe
from torture.report.figures.grid import USUAL, axes_rank, grid_of
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.figures.sentence import answer_in_words, question_in_words
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
            "9 of 20 cuts damaged data or lost acknowledged writes [23-69 %], up to 0.7 s of them",
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


def test_the_recommended_choices_lost_nothing_are_safe_in_theory_and_stand_by_speed() -> None:
    slow, fast = (
        replace(figures(name, intact=3), worth=Worth(durable_per_s=per_s))
        for name, per_s in ((ALWAYS, 10.0), (ALWAYS.replace("noslog", "plp"), 99.0))
    )
    lossy = replace(slow, harm=rate_of(1, 3))
    unsafe = replace(figures(DISABLED, intact=3), worth=Worth(durable_per_s=500.0))
    chosen = fastest_safe([figures(NFS3, intact=3), slow, lossy, unsafe, fast])
    assert [choice.figures for choice in chosen] == [fast, slow]


def test_the_bounds_of_choices_allow_for_the_choosing() -> None:
    """Two of three safe cells are chosen since they lost nothing, so each may err in 2/3 of 5 %."""
    safe = [
        replace(figures(name, intact=9), worth=Worth(durable_per_s=10.0))
        for name in (ALWAYS, ALWAYS.replace("noslog", "plp"))
    ]
    lossy = replace(safe[0], harm=rate_of(1, 9))
    bounds = {choice.lost_at_most for choice in fastest_safe([*safe, lossy])}
    assert bounds == {rate_of(0, 9, confidence=1 - 0.05 * 2 / 3).high}
    assert {choice.lost_at_most for choice in fastest_safe(safe)} == {rate_of(0, 9).high}

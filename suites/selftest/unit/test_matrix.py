"""Cells, their names, the matrices, and what theory promises for each cell."""

from __future__ import annotations

from enum import StrEnum
from math import prod

import pytest

from torture.matrix.axes import Fate, Filesystem, Slog, Sync, Transport
from torture.matrix.cells import Cell, Matrix, cells_of
from torture.matrix.promises import ROLLBACK_MS_MAX, Promise, promise_of
from torture.matrix.verdicts import Verdict

AXES: tuple[type[StrEnum], ...] = (Transport, Sync, Slog, Filesystem, Fate)
ALL_CELLS = sorted({cell for matrix in Matrix for cell in cells_of(matrix)})
EXAMPLE = "iscsi-standard-noslog-btrfs-nasonly"


@pytest.mark.parametrize("chosen", ALL_CELLS, ids=lambda chosen: chosen.name)
def test_a_name_is_its_cell(chosen: Cell) -> None:
    assert Cell.parse(chosen.name) == chosen
    assert chosen.name == "-".join(chosen.axes.values())


def test_the_example_of_the_documents_parses() -> None:
    assert Cell.parse(EXAMPLE) == Cell(
        transport=Transport.ISCSI,
        sync=Sync.STANDARD,
        slog=Slog.NONE,
        filesystem=Filesystem.BTRFS,
        fate=Fate.NAS_ONLY,
    )


@pytest.mark.parametrize("place", range(len(AXES)))
def test_an_error_names_the_bad_part_and_what_is_known(place: int) -> None:
    parts = EXAMPLE.split("-")
    parts[place] = "floppy"
    with pytest.raises(ValueError, match="'floppy'") as caught:
        Cell.parse("-".join(parts))
    said = str(caught.value)
    assert AXES[place].__name__ in said
    assert all(choice in said for choice in AXES[place])


@pytest.mark.parametrize("name", ["", "-", "iscsi", EXAMPLE[:-8], f"{EXAMPLE}-more", "----"])
def test_a_name_of_the_wrong_shape_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"parts|is no"):
        Cell.parse(name)


def test_case_and_spaces_are_not_forgiven() -> None:
    for name in (EXAMPLE.upper(), f" {EXAMPLE}", f"{EXAMPLE} "):
        with pytest.raises(ValueError, match="is no"):
            Cell.parse(name)


def test_matrices_nest() -> None:
    quick, default, full = (set(cells_of(matrix)) for matrix in Matrix)
    assert quick < default < full


@pytest.mark.parametrize("matrix", Matrix)
def test_a_matrix_is_stable_and_has_no_cell_twice(matrix: Matrix) -> None:
    cells = cells_of(matrix)
    assert cells == cells_of(matrix)
    assert len(set(cells)) == len(cells)


def test_quick_is_every_sync_with_every_fate_on_btrfs() -> None:
    quick = cells_of(Matrix.QUICK)
    assert len(quick) >= 6
    on_btrfs = {(cell.sync, cell.fate) for cell in quick if cell.filesystem is Filesystem.BTRFS}
    assert on_btrfs == {(sync, fate) for sync in Sync for fate in Fate}


def test_default_covers_the_axes_of_today() -> None:
    default = cells_of(Matrix.DEFAULT)
    assert {cell.slog for cell in default} == set(Slog)
    assert {cell.filesystem for cell in default} >= {Filesystem.BTRFS, Filesystem.EXT4}


def test_full_is_the_whole_space() -> None:
    assert len(cells_of(Matrix.FULL)) == prod(len(axis) for axis in AXES)


def test_no_choice_is_on_two_axes() -> None:
    """Each is a pytest mark: a choice on two axes would select the cells of both."""
    choices = [choice.value for axis in AXES for choice in axis]
    assert len(set(choices)) == len(choices)
    assert all(choice.isidentifier() for choice in choices), "`-m` takes identifiers only"


THEORY = {
    (Sync.STANDARD, Fate.BOTH_DIE): Promise.SAFE,
    (Sync.STANDARD, Fate.NAS_ONLY): Promise.LOSES,
    (Sync.ALWAYS, Fate.BOTH_DIE): Promise.SAFE,
    (Sync.ALWAYS, Fate.NAS_ONLY): Promise.SAFE,
    (Sync.DISABLED, Fate.BOTH_DIE): Promise.ROLLS_BACK,
    (Sync.DISABLED, Fate.NAS_ONLY): Promise.LOSES,
}
"""LIO iblock on a zvol, disks that honour flushes: the first rows of the design's table."""


@pytest.mark.parametrize("chosen", ALL_CELLS, ids=lambda chosen: chosen.name)
def test_a_cell_promises_what_theory_says(chosen: Cell) -> None:
    assert promise_of(chosen) is THEORY[chosen.sync, chosen.fate]


KEPT_BY = {
    Promise.SAFE: {Verdict.INTACT},
    Promise.ROLLS_BACK: {Verdict.INTACT, Verdict.REPAIRED, Verdict.ROLLED_BACK},
    Promise.LOSES: set(Verdict) - {Verdict.POOL_LOST},
}


@pytest.mark.parametrize("promise", Promise)
@pytest.mark.parametrize("verdict", Verdict)
def test_a_promise_is_broken_by_what_is_worse_and_never_by_the_machinery(
    promise: Promise, verdict: Verdict
) -> None:
    keeps = verdict in KEPT_BY[promise] or verdict is Verdict.INCONCLUSIVE
    assert promise.is_broken_by(verdict) is not keeps


def test_a_rollback_longer_than_three_transaction_groups_breaks_a_promise_to_roll_back() -> None:
    assert ROLLBACK_MS_MAX == 3 * 5_000
    rolls_back = Promise.ROLLS_BACK
    assert not rolls_back.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX)
    assert rolls_back.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX + 0.1)
    assert not rolls_back.is_broken_by(Verdict.INCONCLUSIVE, ROLLBACK_MS_MAX + 0.1)
    assert not Promise.LOSES.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX + 0.1)
    assert Promise.SAFE.is_broken_by(Verdict.ROLLED_BACK, 0.0)

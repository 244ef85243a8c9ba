"""An axis is one declaration, and everything that lists choices derives from it."""

from __future__ import annotations

from typing import Any

import pytest

from suites.selftest.recorded.axes_table import axes_table
from suites.selftest.unit.every_cell import GROWING
from torture.choices.matrix.cells import AXES, CHOICES, Cell, cells_of
from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import SWEEPS, Matrix, Sweep
from torture.files import CHECKOUT
from torture.report.figures.wording import AXIS_TITLES, choice_in_words


def test_the_page_of_axes_has_the_table_of_todays_axes() -> None:
    assert axes_table() in (CHECKOUT / "docs/axes.md").read_text()


def test_the_page_calls_axes_and_choices_by_their_own_words() -> None:
    assert list(AXIS_TITLES.values()) == [axis.title for axis in AXES.values()]
    assert {name: choice_in_words(name) for name in CHOICES} == {
        name: choice.words for name, choice in CHOICES.items()
    }


def test_axes_stand_in_the_order_of_their_places_and_no_two_share_one() -> None:
    places = [axis.place for axis in AXES.values()]
    assert places == sorted(set(places))


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda axis: axis.field)
def test_every_sweep_has_a_choice_on_every_axis(axis: Axis[Any]) -> None:
    """An axis that forgot one would empty that sweep."""
    joined = {sweep for choice in axis.choices for sweep in choice.joins}
    assert joined == set(Sweep)


def test_every_matrix_holds_the_sweeps_of_the_smaller_one() -> None:
    quick, default, full = (SWEEPS[matrix] for matrix in GROWING)
    assert set(quick) < set(default) < set(full)


def test_every_sweep_is_in_the_full_matrix_or_in_one_of_its_own() -> None:
    alone = [sweep for matrix in Matrix if matrix not in GROWING for sweep in SWEEPS[matrix]]
    assert sorted([*SWEEPS[Matrix.FULL], *alone]) == sorted(Sweep)


def test_a_new_choice_joins_no_matrix_unless_it_says_so() -> None:
    assert Choice(name="new", value=None, words="new").joins == frozenset()


def test_a_choice_that_joins_no_sweep_can_still_be_asked_for() -> None:
    """A cell is any combination that makes sense, whether a matrix has it or not."""
    name = "iscsi-always-mirror-hdd-raidz1-xfs-bothdie"
    assert Cell.parse(name) not in cells_of(Matrix.FULL)
    assert Cell.parse(name).name == name


def test_a_rule_beside_an_axis_refuses_a_meaningless_choice() -> None:
    with pytest.raises(ValueError, match="'hdd' is the class of a SLOG, and 'noslog' has none"):
        Cell.parse("iscsi-always-noslog-btrfs-bothdie").but(slog_class="hdd")

"""An axis is one declaration, and everything that lists choices derives from it.

The kernels of the guests: their recipes, and the versions of OpenZFS that fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suites.selftest.recorded.axes_table import axes_table
from suites.selftest.unit.every_cell import GROWING
from torture.choices.matrix.cells import AXES, CHOICES, Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import SWEEPS, Matrix, Sweep
from torture.facts.linux import kernels
from torture.facts.linux.kernels import (
    DEFAULT,
    DEFAULT_KERNELS,
    Kernels,
    linux_names,
    linux_version,
    why_unfit,
)
from torture.facts.zfs.versions import version_names, zfs_version
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


_OF_TREE = "2.4.99-0123456789ab"


def test_the_default_is_the_first_name() -> None:
    assert linux_names()[0] == DEFAULT == DEFAULT_KERNELS.client


@pytest.mark.parametrize("zfs", version_names())
def test_each_zfs_runs_in_the_kernel_of_its_own_suite(zfs: str) -> None:
    version = zfs_version(zfs)
    assert why_unfit(version, linux_version(version.suite)) == ""


@pytest.mark.parametrize(
    ("zfs", "linux", "fits"),
    [
        ("2.1.11", "bookworm", True),
        ("2.1.11", "bookworm-backports", False),
        ("2.1.11", "trixie", False),
        ("2.3.2", "trixie", True),
        ("2.3.9", "bookworm", True),
        ("2.3.9", "bookworm-backports", True),
        ("2.3.9", "trixie-backports", False),
        ("2.3.9+log_not_claimed", "trixie-backports", False),
        ("2.4.4", "trixie-backports", False),
        (_OF_TREE, "trixie-backports", True),
        (_OF_TREE, "bookworm", False),
    ],
)
def test_a_pair_fits_by_the_bounds_of_zfs(zfs: str, linux: str, fits: bool) -> None:
    assert (why_unfit(zfs_version(zfs), linux_version(linux)) == "") is fits


def test_the_reason_names_both_versions() -> None:
    why = why_unfit(zfs_version("2.1.11"), linux_version("bookworm-backports"))
    assert why == "OpenZFS 2.1.11 supports Linux 3.10 to 6.2, and bookworm-backports has 6.12"


def test_an_unknown_kernel_is_refused_with_the_known_ones() -> None:
    for name in ("6.12", "../zfs/2.3.9", ""):
        with pytest.raises(HarnessError) as caught:
            linux_version(name)
        assert "trixie-backports" in caught.value.hint


@pytest.mark.parametrize("text", ["", "[linux]", "[linux]\nseries = 6", '[linux]\nseries = "six"'])
def test_a_garbled_recipe_is_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text(text)
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    with pytest.raises(HarnessError, match=r"own\.toml"):
        linux_version("own")


def test_only_another_kernel_than_the_default_is_an_option() -> None:
    assert DEFAULT_KERNELS.option_of("nas") == DEFAULT_KERNELS.option_of("client") == ""
    both = Kernels.same("bookworm")
    assert both.option_of("nas") == both.option_of("client_git") == " --linux bookworm"
    assert Kernels.same(None) == DEFAULT_KERNELS
    nas = Kernels(nas="trixie-backports")
    assert nas.option_of("nas_samba") == " --linux trixie-backports"
    assert nas.option_of("client_git") == ""

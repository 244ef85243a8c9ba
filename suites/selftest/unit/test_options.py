"""Which cells a session runs: a matrix's, or exactly those of `--cell`; and their marks."""

from __future__ import annotations

import pytest

from fixtures.options import read_options
from suites.selftest.unit.collecting import cells_in, collect
from torture.axes.sweeps import Matrix
from torture.matrix.cells import cells_of
from torture.schedules import order_of
from torture.stats.sequential import Until

IN_NO_MATRIX = "iscsi-always-mirror-optane-raidz1-lyingdisks-xfs-bothdie"
IN_QUICK = "iscsi-always-noslog-btrfs-bothdie"


def test_cells_that_are_named_replace_the_matrix_each_once() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK, IN_NO_MATRIX)]
    assert cells_in(collect("--matrix", "full", *arguments)) == [IN_NO_MATRIX, IN_QUICK]


def test_named_cells_are_narrowed_by_mark_too() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK)]
    assert cells_in(collect(*arguments, "-m", "optane")) == [IN_NO_MATRIX]


def test_a_mark_selects_its_choice_and_nothing_that_only_sounds_like_it() -> None:
    chosen = [cell.name for cell in cells_of(Matrix.FULL) if cell.axes["slog"] == "plp"]
    assert cells_in(collect("--matrix", "full", "-m", "plp")) == chosen
    assert len(chosen) > 1


def test_a_cell_there_is_none_of_ends_the_session_with_the_reason() -> None:
    done = collect("--cell=iscsi-always-noslog-optane-btrfs-bothdie")
    assert done.returncode == 4
    assert "ERROR: --cell: 'optane' is a slog's class" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_question_that_is_none_ends_the_session_with_an_example() -> None:
    done = collect("--until=upper>0.01")
    assert done.returncode == 4
    assert "--until: ask 'upper<', not 'upper>'; say e.g. 'upper<0.01'" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("until", "asked", "trials"),
    [(None, None, 1), (None, 7, 7), ("upper<0.01", None, 4 * 535), ("lower > 0.5", 12, 12)],
)
def test_a_question_says_how_many_trials_unless_the_user_does(
    until: str | None,
    asked: int | None,
    trials: int,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = None if until is None else str(Until.parse(until))
    order = None if until is None else order_of(f"until:{until}")
    monkeypatch.setattr(pytestconfig.option, "until", order)
    monkeypatch.setattr(pytestconfig.option, "trials", asked)
    options = read_options(pytestconfig)
    assert (options.trials, options.schedule.question) == (trials, question or "")
    written = options.as_json()
    assert (written["trials"], written["until"]) == (trials, question)
    assert written["schedule"] == ("fixed" if until is None else f"until:{until}")


def test_more_trials_than_fit_into_memory_are_refused(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "matrix", Matrix.FULL)
    monkeypatch.setattr(pytestconfig.option, "until", order_of("until:upper<0.0001"))
    with pytest.raises(pytest.UsageError, match="say fewer --trials, or --cell"):
        read_options(pytestconfig)

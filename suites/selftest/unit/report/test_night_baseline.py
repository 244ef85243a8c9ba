"""The baseline of a night: never the same night, never a later one, and it moves only forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.report.night.baseline import BEFORE, move_baseline, night_before, read_night

CELLS = [Cell.parse("iscsi-always-noslog-ext4-bothdie")]


def night(tmp_path: Path, day: int, *, name: str = "", trials: int = 6) -> Path:
    """The merged run of a day, whose seed is the day."""
    return write_run(
        tmp_path / (name or f"day-{day}"),
        make_records(trials, cells=CELLS, seed=day),
        begun=f"2026-11-{day:02}T01:23:00+0000",
    )


def test_the_first_night_has_no_baseline(tmp_path: Path) -> None:
    last = tmp_path / "last"
    monday = night(tmp_path, 2)
    assert night_before(monday, last) is None
    assert move_baseline(monday, last)
    assert night_before(monday, last) is None, "not itself"


def test_the_newest_other_night_is_the_baseline_however_often_one_merges(tmp_path: Path) -> None:
    last = tmp_path / "last"
    for day in (2, 3, 4):
        tonight = night(tmp_path, day)
        for merge in range(3):
            baseline = night_before(tonight, last)
            if day > 2:
                assert baseline is not None
                assert read_night(baseline).is_same(read_night(tmp_path / f"day-{day - 1}")), merge
            assert move_baseline(tonight, last)
    assert not (last / BEFORE / BEFORE).exists(), "two nights at most"


def test_a_merge_with_fewer_trials_is_the_same_night(tmp_path: Path) -> None:
    last = tmp_path / "last"
    move_baseline(night(tmp_path, 2), last)
    assert night_before(night(tmp_path, 2, name="half", trials=3), last) is None


def test_an_older_night_moves_no_baseline_and_meets_none_that_is_later(tmp_path: Path) -> None:
    last = tmp_path / "last"
    monday, tuesday, wednesday = (night(tmp_path, day) for day in (2, 3, 4))
    move_baseline(tuesday, last)
    move_baseline(wednesday, last)
    assert not move_baseline(monday, last)
    assert night_before(monday, last) is None
    assert night_before(tuesday, last) is None
    assert read_night(last).is_same(read_night(wednesday))


def test_a_baseline_that_cannot_be_read_is_an_error_and_is_replaced(tmp_path: Path) -> None:
    last, monday = tmp_path / "last", night(tmp_path, 2)
    last.mkdir()
    (last / "rubbish").write_text("x")
    with pytest.raises(HarnessError):
        night_before(monday, last)
    assert move_baseline(monday, last)
    assert not (last / "rubbish").exists()

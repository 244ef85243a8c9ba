"""A night counts as the page does: no replay stands for a cut, and walks alone have an alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.report.test_report_origins import CELLS, REPLAYED, replay_run
from suites.selftest.unit.report_records import write_run
from torture.features.night.merge import Remember, merge_night
from torture.features.night.plan import Plan
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials_file import read_records


def test_a_replay_does_not_stand_for_a_trial_that_a_night_still_owes(tmp_path: Path) -> None:
    plan = Plan(cells=CELLS, shards=2, trials=1, seed=5)
    file = replay_run(tmp_path, "later", REPLAYED) / TRIALS_FILE
    found = [record.trial for record in read_records(file).live]
    assert sum(gap.missing for gap in plan.gaps(found)) == len(CELLS)


def test_a_night_of_walks_alone_has_its_alarm(tmp_path: Path) -> None:
    pytest.importorskip("torture.features.walk")
    from suites.selftest.unit.walk.test_report_counted import walk

    write_run(tmp_path / "shards" / "one", [walk(lost=7), walk(seed=2)])
    night = merge_night(
        artifacts=tmp_path / "shards",
        plan=None,
        last=tmp_path / "last",
        site=tmp_path / "site",
        remember=Remember.NONE,
    )
    assert any("1 trial was worse than theory guarantees" in one for one in night.complaints)
    assert not any("No conclusive trial" in one for one in night.complaints)

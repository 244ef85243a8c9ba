"""The terms of a run of walks, and the draws of a walk's patience."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fixtures.campaigns import terms_in
from suites.selftest.unit.fake_workers import ASKED, FakeSite, campaign_of, play, specs_of
from torture.choices.matrix.cells import Cell
from torture.features.walk.documents import WalkEngine
from torture.features.walk.draws import draw_walked
from torture.features.walk.tasks import FRESH_S, Walk
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.plan.draw import draw_trials


def test_a_run_is_known_by_its_walks_too() -> None:
    """Else a run would go on with another number of states, or with another engine."""
    cells = [Cell.parse("iscsi-always-noslog-ext4-bothdie")]
    walk = Walk(states=7, engine=WalkEngine.NATIVE)
    walked = draw_walked(cells, recordings=2, walk=walk, run_seed=1, load_ms=500)
    assert terms_in(walked) == {"walks": [[7, "native"]]}
    assert terms_in(draw_trials(cells, trials=2, run_seed=1, load_ms=500)) == {}


def test_a_long_walk_has_its_time_on_top_of_the_sites_deadline(tmp_path: Path) -> None:
    site = FakeSite()
    plain, walked = specs_of(ASKED, trials=2)
    walked = replace(walked, task=Walk(states=5, minutes=40, fresh=2))
    schedule = FixedSchedule((plain, walked))
    campaign = campaign_of(tmp_path, schedule, site, jobs=1, longer_s=walked.task.longer_s)
    play(campaign, ASKED)
    assert site.deadlines_s == [
        site.trial_deadline_s,
        site.trial_deadline_s + 40 * 60 + 2 * FRESH_S,
    ]
    assert campaign.patience_s >= sum(site.deadlines_s)

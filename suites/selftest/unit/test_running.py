"""How a test waits for its trials, over workers that need no machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.campaigns import Running
from suites.selftest.unit.fake_workers import ASKED, OTHER, FakeSite, campaign_of, specs_of
from torture.errors import HarnessError
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.campaign.campaign import Campaign

Begun = Callable[[FakeSite], Campaign]


@pytest.fixture
def begun(tmp_path: Path, request: pytest.FixtureRequest) -> Begun:
    """Starts a campaign of two cells over a site; it ends with the test."""

    def begin(site: FakeSite) -> Campaign:
        schedule = FixedSchedule(specs_of(ASKED, OTHER, trials=3))
        campaign = campaign_of(tmp_path, schedule, site)
        request.addfinalizer(campaign.stop)
        campaign.start()
        return campaign

    return begin


def test_the_wait_ends_with_the_last_trial_of_the_cell(begun: Begun) -> None:
    campaign = begun(FakeSite())
    Running(campaign).wait_for(ASKED)
    assert len(campaign.records_of(ASKED)) == 3


def test_the_wait_ends_before_that_when_enough_is_there(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixtures.campaigns._POLL_S", 0.01)
    campaign = begun(FakeSite(outcome=lambda spec: "H" if spec.index else "."))
    Running(campaign).wait_for(ASKED, is_enough=lambda: bool(campaign.records_of(ASKED)))
    assert len(campaign.records_of(ASKED)) == 1


def test_a_run_that_cannot_go_on_fails_the_test_in_its_words(begun: Begun) -> None:
    def refuse(_number: int) -> None:
        raise HarnessError("no worker can start")

    running = Running(begun(FakeSite(before_start=refuse)))
    with pytest.raises(pytest.fail.Exception, match=r"the run cannot go on: .*no worker") as failed:
        running.wait_for(ASKED)
    assert failed.value.__context__ is None, "else pytest prints both"


@pytest.mark.parametrize(("name", "said"), [("", ASKED.name), ("flush-dropped", "flush-dropped")])
def test_trials_that_do_not_end_fail_the_test_by_their_name(
    begun: Begun, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Campaign, "patience_s", 0.0)
    running = Running(begun(FakeSite(outcome=lambda _: "H")))
    with pytest.raises(pytest.fail.Exception, match=f"the trials of {said} did not end"):
        running.wait_for(ASKED, name=name)

"""Places whose workers come and go: late ones join, and no host alone makes a trial inconclusive."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from suites.selftest.unit.fake_workers import (
    ASKED,
    DEADLINE_S,
    FakeSite,
    campaign_of,
    play,
    specs_of,
)
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.records.record.specs import TrialSpec
from torture.records.schedules.fixed import FixedSchedule

POLL_S = 0.01


def test_the_place_says_how_many_workers_there_are(tmp_path: Path) -> None:
    site = FakeSite(own_slots={4, 7, 9})
    records = play(campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=30)), site), ASKED)
    assert len(records) == 30
    assert {controller.number for controller in site.controllers} <= {4, 7, 9}


def test_no_more_workers_start_than_trials_are_left(tmp_path: Path) -> None:
    site = FakeSite(own_slots=set(range(50)))
    play(campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=3)), site), ASKED)
    assert len(site.controllers) <= 3


def test_a_late_worker_joins_a_run_that_waits_for_it(tmp_path: Path) -> None:
    site = FakeSite(own_slots=set(), waits_s=DEADLINE_S)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=4)), site)
    campaign.start()
    assert not campaign.wait_for(ASKED, timeout_s=0.2)
    site.own_slots = {0}
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert len(campaign.records) == 4


def test_a_late_worker_joins_others_at_work(tmp_path: Path) -> None:
    go_on = threading.Event()

    def hold(_spec: TrialSpec) -> None:
        assert go_on.wait(DEADLINE_S)

    site = FakeSite(own_slots={0}, before_trial=hold)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=4)), site)
    campaign.start()
    site.own_slots = {0, 1}
    assert wait_until_true(
        lambda: len(site.begun) == 2, deadline_s=DEADLINE_S, poll_s=POLL_S
    )  # both hold a trial
    go_on.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert {controller.number for controller in site.controllers} == {0, 1}


def test_a_run_without_a_worker_ends_with_the_reason(tmp_path: Path) -> None:
    site = FakeSite(own_slots=set())
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=1)), site)
    campaign.start()
    with pytest.raises(HarnessError, match="ended before its schedule"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()


def test_a_run_that_cannot_keep_records_does_not_wait_for_another_worker(tmp_path: Path) -> None:
    site = FakeSite(own_slots={0}, waits_s=DEADLINE_S)
    campaign = campaign_of(tmp_path / "missing", FixedSchedule(specs_of(ASKED, trials=2)), site)
    campaign.start()
    with pytest.raises(HarnessError, match="the run cannot go on"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S / 3)
    campaign.stop()


@pytest.mark.parametrize("is_of_evidence", [False, True])
def test_a_run_without_room_does_not_wait_for_trials_under_way(
    tmp_path: Path, is_of_evidence: bool
) -> None:
    """A trial may hang for minutes, and its record could not be kept either."""

    def end(spec: TrialSpec) -> None:
        if is_of_evidence and spec.index:
            raise OSError(errno.ENOSPC, "No space left on device")

    site = FakeSite(outcome=lambda spec: ".H"[spec.index == 0], before_trial=end)
    folder = tmp_path / ("there" if is_of_evidence else "missing")
    campaign = campaign_of(folder, FixedSchedule(specs_of(ASKED, trials=3)), site)
    campaign.start()
    with pytest.raises(HarnessError, match="the run cannot go on"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S / 3)
    campaign.stop()
    assert not any(worker.is_running for worker in site.controllers)


def test_a_place_that_is_gone_costs_no_trial(tmp_path: Path) -> None:
    """Else three lost tries of each would make it inconclusive."""
    site = FakeSite(outcome=lambda _spec: "D", waits_s=DEADLINE_S)

    def lose(_spec: TrialSpec) -> None:
        site.failure = HarnessError("the scheduler is gone")

    site.before_trial = lose
    site.before_start = lambda _number: _refuse_once_gone(site)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=6)), site)
    campaign.start()
    with pytest.raises(HarnessError, match="the scheduler is gone"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert campaign.records == ()


def _refuse_once_gone(site: FakeSite) -> None:
    if site.failure is not None:
        raise HarnessError("no host")


@pytest.mark.parametrize("trials", [1, 2, 12])
def test_a_trial_that_died_on_one_worker_is_tried_on_another(tmp_path: Path, trials: int) -> None:
    """On worker 0 every trial dies, at once; worker 1 takes its time."""
    running = threading.local()

    def outcome(_spec: TrialSpec) -> str:
        return "D" if running.number == 0 else "."

    def note(number: int) -> None:
        running.number = number

    site = FakeSite(outcome=outcome, before_start=note)
    schedule = FixedSchedule(specs_of(ASKED, trials=trials))
    records = play(campaign_of(tmp_path, schedule, site), ASKED)
    assert len(records) == trials
    assert [record.error for record in records] == [None] * trials


def test_the_last_worker_tries_a_trial_again_that_died_there(tmp_path: Path) -> None:
    dead: list[TrialSpec] = []

    def outcome(spec: TrialSpec) -> str:
        dead.append(spec)
        return "D" if len(dead) < 3 else "."

    site = FakeSite(outcome=outcome)
    [record] = play(
        campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=1)), site, jobs=1), ASKED
    )
    assert (record.error, record.dead_tries) == (None, 2)

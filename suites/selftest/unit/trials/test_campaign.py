"""Campaigns over workers that need no machines: which trials run, in what order, and what is kept."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from suites.selftest.unit.fake_workers import (
    ASKED,
    DEADLINE_S,
    FEWEST,
    OTHER,
    THIRD,
    FakeSite,
    campaign_of,
    play,
    record_of,
    specs_of,
    until,
)
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.shards import Shard
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.facts.stats.sequential import Answer
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.until import Settled
from torture.trials.campaign import campaign as campaign_module
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy

LOST = Settled(answer=Answer.NO, events=5, trials=5)
"""The answer that settles a cell that always loses."""


def play_in_vain(campaign: Campaign, *, match: str, timeout_s: float = DEADLINE_S) -> None:
    """Run a campaign that cannot go on for this reason."""
    campaign.start()
    with pytest.raises(HarnessError, match=match):
        campaign.wait_for(ASKED, timeout_s=timeout_s)
    campaign.stop()


def loses_where_not_asked(spec: TrialSpec) -> str:
    return "." if spec.cell == ASKED else "L"


def test_one_worker_runs_the_trials_in_the_order_they_were_drawn(tmp_path: Path) -> None:
    specs = specs_of(ASKED, OTHER, trials=5)
    site = FakeSite()
    records = play(campaign_of(tmp_path, FixedSchedule(specs), site, jobs=1), ASKED, OTHER)
    assert site.begun == [*specs]
    assert [record.trial for record in records] == [spec.trial for spec in specs]
    assert len(site.controllers) == 1


def test_every_trial_is_run_once_however_many_workers_there_are(tmp_path: Path) -> None:
    specs = specs_of(ASKED, OTHER)
    site = FakeSite()
    campaign = campaign_of(tmp_path, FixedSchedule(specs), site, jobs=5)
    records = play(campaign, ASKED, OTHER)
    assert sorted(record.trial for record in records) == sorted(spec.trial for spec in specs)
    assert len(site.begun) == campaign.total == 120
    assert campaign.schedule_in_words == ""
    assert campaign.states == {}


def test_a_campaign_holds_no_record_of_its_ended_trials(tmp_path: Path) -> None:
    """A run of many hosts has some 100,000 records, which would take half a gigabyte."""
    gc.collect()
    before = _records_held()
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, OTHER)), FakeSite(), jobs=5)
    assert len(play(campaign, ASKED, OTHER)) == 120
    gc.collect()
    assert campaign.verdicts.total() == 120
    assert _records_held() <= before


def _records_held() -> int:
    return sum(isinstance(one, TrialRecord) for one in gc.get_objects())


def test_a_loss_is_recorded_though_its_reproducer_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(campaign_module, "keep_reproducer", fail)
    site = FakeSite(outcome=lambda _spec: "C")
    specs = specs_of(ASKED, trials=2)
    records = play(campaign_of(tmp_path, FixedSchedule(specs), site), ASKED)
    assert [record.verdict for record in records] == [Verdict.CORRUPTED] * 2


def test_an_answered_cell_gets_no_more_trials_and_others_go_on(tmp_path: Path) -> None:
    """With one worker; of several, the others may be ahead of the one whose trial takes long."""
    site = FakeSite(outcome=loses_where_not_asked)
    schedule = until(ASKED, OTHER)
    campaign = campaign_of(tmp_path, schedule, site, jobs=1)
    assert campaign.total == 120
    records = play(campaign, ASKED, OTHER)
    asked = [record for record in records if record.cell == ASKED.name]
    assert len(asked) == FEWEST
    assert len(records) - len(asked) == LOST.trials
    assert campaign.total == len(records) == len(site.begun)
    answered = Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert schedule.settled == {OTHER: LOST, ASKED: answered}
    assert campaign.schedule_in_words == "loss upper<0.3: yes 1, no 1"


def test_a_cell_that_cannot_answer_gets_all_its_trials(tmp_path: Path) -> None:
    site = FakeSite(outcome=lambda spec: "..L"[spec.index % 3])
    campaign = campaign_of(tmp_path, until(ASKED), site)
    assert len(play(campaign, ASKED)) == campaign.total == 60
    assert campaign.schedule_in_words == "loss upper<0.3: unanswered 1"


def test_a_shards_cells_stop_where_those_of_the_whole_run_do(tmp_path: Path) -> None:
    """Which trials count for the answer depends on the cell alone, not on who shares the workers."""

    def played(folder: Path, cells: Sequence[Cell], jobs: int) -> dict[Cell, Settled]:
        folder.mkdir()
        site = FakeSite(outcome=loses_where_not_asked)
        schedule = until(*cells)
        records = play(campaign_of(folder, schedule, site, jobs=jobs), *cells)
        whole = specs_of(ASKED, OTHER, THIRD)
        for cell, settled in schedule.settled.items():
            row = [spec.trial for spec in whole if spec.cell == cell][: settled.trials]
            assert {*row} <= {record.trial for record in records}
        return schedule.settled

    cells = (ASKED, OTHER, THIRD)
    whole = played(tmp_path / "whole", cells, 3)
    assert whole.keys() == {*cells}
    shards = [
        played(tmp_path / str(shard.number), sorted(shard.share_of(cells)), 1)
        for shard in Shard.all_of(2)
    ]
    assert shards[0] | shards[1] == whole
    assert not shards[0].keys() & shards[1].keys()


def test_a_slow_first_trial_holds_the_answer_and_is_recorded(tmp_path: Path) -> None:
    """While it is under way others end cleanly, more than enough of them; it then says what counts."""
    go_on, many_ended = threading.Event(), threading.Event()
    quick = FEWEST + 20

    def hold(spec: TrialSpec) -> None:
        if spec.index == 0:
            assert go_on.wait(DEADLINE_S)
        if spec.index == quick:
            many_ended.set()
        if spec.index >= quick:
            assert go_on.wait(DEADLINE_S)
            assert wait_until_true(
                lambda: bool(schedule.settled), deadline_s=DEADLINE_S, poll_s=0.01
            )

    site = FakeSite(before_trial=hold)
    schedule = until(ASKED)
    campaign = campaign_of(tmp_path, schedule, site)
    campaign.start()
    assert many_ended.wait(DEADLINE_S)
    assert len(campaign.records) == quick - 1 > FEWEST
    assert (schedule.settled, campaign.total) == ({}, 60)
    assert not campaign.wait_for(ASKED, timeout_s=0.05)
    go_on.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert schedule.settled[ASKED] == Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert campaign.total == len(campaign.records) < 60
    assert {spec.index for spec in site.begun} == set(range(campaign.total))


def test_the_wait_lasts_until_trials_under_way_have_ended(tmp_path: Path) -> None:
    last_begun, go_on = threading.Event(), threading.Event()

    def hold(spec: TrialSpec) -> None:
        if spec.index == FEWEST - 1:
            assert last_begun.wait(DEADLINE_S)
        if spec.index == FEWEST:
            last_begun.set()
            assert go_on.wait(DEADLINE_S)

    campaign = campaign_of(tmp_path, until(ASKED), FakeSite(before_trial=hold))
    campaign.start()
    assert last_begun.wait(DEADLINE_S)
    assert not campaign.wait_for(ASKED, timeout_s=0.3)
    assert campaign.total == FEWEST + 1
    go_on.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert len(campaign.records) == FEWEST + 1


class InTurn(FixedSchedule):
    """Gives a trial only when none is under way; `knows_the_end` or for ever waits for more."""

    def __init__(self, specs: Sequence[TrialSpec], *, knows_the_end: bool = True) -> None:
        super().__init__(specs)
        self.knows_the_end = knows_the_end
        self.under_way = 0

    @property
    def is_over(self) -> bool:
        return self.knows_the_end and super().is_over

    def is_cell_over(self, cell: Cell) -> bool:
        return self.knows_the_end and super().is_cell_over(cell)

    def next_spec(self) -> TrialSpec | None:
        spec = None if self.under_way else super().next_spec()
        self.under_way += spec is not None
        return spec

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        super().record_ended(spec, record)
        self.under_way -= 1


def test_a_schedule_may_wait_for_a_trials_end_before_it_gives_another(tmp_path: Path) -> None:
    schedule = InTurn(specs_of(ASKED, trials=20))
    most_at_once = 0

    def count(_spec: TrialSpec) -> None:
        nonlocal most_at_once
        most_at_once = max(most_at_once, schedule.under_way)

    records = play(campaign_of(tmp_path, schedule, FakeSite(before_trial=count), jobs=3), ASKED)
    assert (len(records), most_at_once) == (20, 1)


def test_a_schedule_that_never_ends_does_not_hang_the_run(tmp_path: Path) -> None:
    schedule = InTurn(specs_of(ASKED, trials=2), knows_the_end=False)
    campaign = campaign_of(tmp_path, schedule, FakeSite())
    play_in_vain(campaign, match="ended before its schedule")
    assert len(campaign.records) == 2


def test_a_trial_that_died_does_not_make_an_endless_schedule_hang(tmp_path: Path) -> None:
    """Its second try ends; then no trial is left, neither for this worker nor for another."""
    tries: list[TrialSpec] = []

    def outcome(spec: TrialSpec) -> str:
        tries.append(spec)
        return "D" if len(tries) == 1 else "."

    schedule = EndlessAfter(specs_of(ASKED, trials=2))
    campaign = campaign_of(tmp_path, schedule, FakeSite(outcome=outcome), jobs=2)
    play_in_vain(campaign, match="ended before its schedule")


class EndlessAfter(FixedSchedule):
    """Drops a trial that is given back, as one that has become needless, and never ends."""

    is_over = False

    def is_cell_over(self, cell: Cell) -> bool:
        return False

    def give_back(self, spec: TrialSpec) -> None:
        pass


def test_the_outcomes_of_these_tests_match_their_letters() -> None:
    spec = specs_of(ASKED, trials=1)[0]
    losses = {letter: record_of(spec, letter).is_loss for letter in ".LC?M"}
    assert losses == {".": False, "L": True, "C": True, "?": False, "M": False}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (EvidencePolicy.ALL, "..LC?M"),
        (EvidencePolicy.BAD, "LC?M"),
        (EvidencePolicy.NONE, ""),
    ],
)
def test_evidence_stays_where_the_policy_says(
    tmp_path: Path, keep: EvidencePolicy, kept: str
) -> None:
    outcomes = "..LC?M"
    specs = specs_of(OTHER, trials=len(outcomes))
    site = FakeSite(
        outcome=lambda spec: outcomes[spec.index],
        before_trial=lambda spec: (tmp_path / "trials" / spec.trial).mkdir(parents=True),
    )
    play(campaign_of(tmp_path, FixedSchedule(specs), site, keep=keep), OTHER)
    left = {path.name for path in (tmp_path / "trials").iterdir()}
    assert "".join(outcomes[spec.index] for spec in specs if spec.trial in left) == kept

"""Campaigns over workers that need no machines: order, gifts back, deaths, stops, answers, shards."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from suites.selftest.unit.fake_workers import FakeSite, record_of, refusing
from torture.campaign.campaign import Campaign, EvidencePolicy, WorkerState
from torture.campaign.run import Run
from torture.errors import HarnessError
from torture.matrix.cells import Cell
from torture.matrix.shards import Shard
from torture.plan.draw import draw_trials
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord, read_records
from torture.schedules.fixed import FixedSchedule
from torture.schedules.protocol import Schedule
from torture.schedules.until import Settled, UntilSchedule
from torture.stats.sequential import Answer, Until
from torture.verdict.verdicts import Verdict

ASKED = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
OTHER = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
THIRD = Cell.parse("iscsi-standard-noslog-btrfs-bothdie")
UNTIL = Until.parse("upper<0.3")
FEWEST = UNTIL.trials_at_best
LOST = Settled(answer=Answer.NO, events=5, trials=5)
"""What a cell is settled by that always loses."""
DEADLINE_S = 30.0


def specs_of(*cells: Cell, trials: int = 60) -> tuple[TrialSpec, ...]:
    return draw_trials(cells, trials=trials, run_seed=1, load_ms=500)


def until(*cells: Cell) -> UntilSchedule:
    return UntilSchedule(specs_of(*cells), UNTIL)


def campaign_of(
    folder: Path,
    schedule: Schedule,
    site: FakeSite,
    *,
    jobs: int = 2,
    keep: EvidencePolicy = EvidencePolicy.ALL,
) -> Campaign:
    return Campaign(run=Run(folder=folder), schedule=schedule, site=site, jobs=jobs, keep=keep)


def play(campaign: Campaign, *cells: Cell) -> tuple[TrialRecord, ...]:
    """Run until these cells are over; returns the records in the order they were written."""
    campaign.start()
    try:
        for cell in cells:
            assert campaign.wait_for(cell, timeout_s=DEADLINE_S), cell.name
    finally:
        campaign.stop()
    records = read_records(campaign.run.trials_file).records
    assert records == campaign.records
    return records


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


def test_an_answered_cell_gets_no_more_trials_and_others_go_on(tmp_path: Path) -> None:
    site = FakeSite(outcome=loses_where_not_asked)
    schedule = until(ASKED, OTHER)
    campaign = campaign_of(tmp_path, schedule, site)
    assert campaign.total == 120
    records = play(campaign, ASKED, OTHER)
    asked = [record for record in records if record.cell == ASKED.name]
    assert FEWEST <= len(asked) <= FEWEST + 2  # one that each worker may have been at
    assert LOST.trials <= len(records) - len(asked) <= LOST.trials + 2
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
            assert go_on.wait(DEADLINE_S)

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


def test_a_trial_that_a_worker_could_not_begin_goes_to_another(tmp_path: Path) -> None:
    schedule = until(ASKED)
    site = FakeSite(before_start=refusing(2))  # as many as make a worker give up
    campaign = campaign_of(tmp_path, schedule, site)
    assert len(play(campaign, ASKED)) == campaign.total
    assert schedule.settled[ASKED].trials == FEWEST


def test_a_worker_waits_for_what_another_may_still_give_back(tmp_path: Path) -> None:
    """The last trial is given back when nothing else is left to do: somebody must still be there."""
    refuse_now, other_began = threading.Event(), threading.Event()

    def start(number: int) -> None:
        if number == 0:
            assert refuse_now.wait(DEADLINE_S)
            raise HarnessError("refused")

    site = FakeSite(before_start=start, before_trial=lambda _spec: other_began.set())
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=2)), site)
    campaign.start()
    assert other_began.wait(DEADLINE_S)
    assert not campaign.wait_for(ASKED, timeout_s=0.2)
    assert len(campaign.records) == 1
    refuse_now.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert len(campaign.records) == 2
    assert {controller.number for controller in site.controllers if controller.ran} == {1}


def test_a_worker_that_dies_costs_its_trial_and_no_more(tmp_path: Path) -> None:
    specs = specs_of(ASKED, trials=4)
    site = FakeSite(outcome=lambda spec: ".D.."[spec.index])
    records = play(campaign_of(tmp_path, FixedSchedule(specs), site, jobs=1), ASKED)
    assert [record.verdict for record in records] == [
        Verdict.INTACT, Verdict.INCONCLUSIVE, Verdict.INTACT, Verdict.INTACT,
    ]  # fmt: skip
    assert records[1].machinery_failed
    for words in ("a worker died", "read w0.log", specs[1].trial, str(tmp_path / "trials")):
        assert words in (records[1].error or "")
    assert [[spec.index for spec in worker.ran] for worker in site.controllers] == [[0, 1], [2, 3]]
    assert not any(worker.is_running for worker in site.controllers)


@pytest.mark.parametrize(("outcome", "workers"), [("M", 2), ("?", 1)])
def test_a_fault_of_the_machinery_costs_the_worker_its_sandbox(
    tmp_path: Path, outcome: str, workers: int
) -> None:
    site = FakeSite(outcome=lambda spec: outcome if spec.index == 0 else ".")
    schedule = FixedSchedule(specs_of(ASKED, trials=3))
    play(campaign_of(tmp_path, schedule, site, jobs=1), ASKED)
    assert len(site.controllers) == workers


def test_a_run_that_is_stopped_records_nothing_of_what_ran(tmp_path: Path) -> None:
    hanging = threading.Barrier(3)

    def hang(spec: TrialSpec) -> None:
        if spec.index == 1:
            hanging.wait(DEADLINE_S)

    site = FakeSite(outcome=lambda spec: ".H"[spec.index], before_trial=hang)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, OTHER, trials=2)), site)
    campaign.start()
    hanging.wait(DEADLINE_S)
    assert {state.stage for state in campaign.states.values()} == {"load"}
    begun = time.monotonic()
    campaign.stop()
    assert time.monotonic() - begun < DEADLINE_S / 3
    assert [record.verdict for record in campaign.records] == [Verdict.INTACT] * 2
    assert site.is_closed
    assert not any(worker.is_running for worker in site.controllers)
    with pytest.raises(HarnessError, match="the run was stopped"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)


def test_a_run_in_which_no_worker_starts_says_why(tmp_path: Path) -> None:
    site = FakeSite(before_start=refusing(100))
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED)), site)
    campaign.start()
    with pytest.raises(HarnessError, match="refused"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert (campaign.records, campaign.total) == ((), 60)
    assert len(site.controllers) == 4  # each worker tries twice


def test_a_worker_that_fails_in_an_unknown_way_gives_its_trial_back(tmp_path: Path) -> None:
    def start(number: int) -> None:
        if number == 0:
            raise OSError("no space left")

    site = FakeSite(before_start=start)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=8)), site)
    assert len(play(campaign, ASKED)) == 8


def test_a_record_that_cannot_be_written_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path / "missing", FixedSchedule(specs_of(ASKED)), FakeSite())
    campaign.start()
    with pytest.raises(HarnessError, match=r"cannot go on.*FileNotFoundError"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()


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
    campaign.start()
    with pytest.raises(HarnessError, match="ended before its schedule"):
        campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert len(campaign.records) == 2


def test_the_stage_that_is_shown_is_the_workers_last_word(tmp_path: Path) -> None:
    spec = specs_of(ASKED, trials=1)[0]
    seen: list[dict[int, WorkerState]] = []
    site = FakeSite(before_trial=lambda _spec: seen.append(campaign.states))
    campaign = campaign_of(tmp_path, FixedSchedule([spec]), site)
    play(campaign, ASKED)
    assert seen == [{0: WorkerState(trial=spec.trial, stage="load")}]


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
    for spec in specs:
        (tmp_path / "trials" / spec.trial).mkdir(parents=True)
    site = FakeSite(outcome=lambda spec: outcomes[spec.index])
    play(campaign_of(tmp_path, FixedSchedule(specs), site, keep=keep), OTHER)
    left = {path.name for path in (tmp_path / "trials").iterdir()}
    assert "".join(outcomes[spec.index] for spec in specs if spec.trial in left) == kept


def test_the_outcomes_of_these_tests_are_what_they_are_called() -> None:
    spec = specs_of(ASKED, trials=1)[0]
    losses = {letter: record_of(spec, letter).is_loss for letter in ".LC?M"}
    assert losses == {".": False, "L": True, "C": True, "?": False, "M": False}

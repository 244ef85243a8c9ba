"""Cells that stop when their question is answered: at which trial, and what the workers do then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torture.campaign.campaign import Campaign, EvidencePolicy
from torture.campaign.run import Run
from torture.campaign.stopping import Settled, Stopping
from torture.campaign.worker import WorkerOrders
from torture.errors import HarnessError
from torture.lab.lab import LabSettings
from torture.matrix.cells import Cell
from torture.matrix.guarantees import guarantee_of
from torture.plan.draw import draw_trials
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord, read_records
from torture.stats.sequential import Answer, Until
from torture.verdict.verdicts import Verdict

ASKED = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
OTHER = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
UNTIL = Until.parse("upper<0.3")
FEWEST = UNTIL.trials_at_best
SPECS = draw_trials([ASKED], trials=60, run_seed=1, load_ms=500)
DEADLINE_S = 30.0

Outcomes = st.lists(st.sampled_from("..........LC?"), min_size=60, max_size=60).map("".join)
"""A letter a trial: `.` intact, `L` consistent but old, `C` corrupted, `?` inconclusive."""


def record_of(spec: TrialSpec, outcome: str) -> TrialRecord:
    return TrialRecord(
        trial=spec.trial,
        cell=spec.cell.name,
        axes=spec.cell.axes,
        seed=spec.seed,
        verdict={
            ".": Verdict.INTACT, "L": Verdict.ROLLED_BACK, "C": Verdict.CORRUPTED,
            "?": Verdict.INCONCLUSIVE,
        }[outcome],
        guarantee=guarantee_of(spec.cell),
        lost=int(outcome in "LC"),
    )  # fmt: skip


def settled_by(
    outcomes: str, order: Sequence[int], *, until: Until = UNTIL, specs: Sequence[TrialSpec] = SPECS
) -> Settled | None:
    """What is known when so many trials have ended in that order."""
    stopping = Stopping(until, specs)
    for place in order:
        stopping.take(ASKED, record_of(specs[place], outcomes[place]))
    return stopping.settled.get(ASKED)


def settled_one_by_one(outcomes: str, until: Until = UNTIL) -> Settled | None:
    """Slowly: every row of first trials, the shortest first."""
    for end in range(1, len(outcomes) + 1):
        row = outcomes[:end].replace("?", "")
        events = sum(one in ("LC" if until.counted == "loss" else "C") for one in row)
        if (answer := until.answer(events, len(row))) is not None:
            return Settled(answer=answer, events=events, trials=len(row))
    return None


@settings(deadline=None)
@given(Outcomes, st.permutations(range(60)), st.sampled_from(["upper<0.3", "corruption upper<0.2"]))
def test_the_order_in_which_trials_end_decides_nothing(
    outcomes: str, order: list[int], question: str
) -> None:
    until = Until.parse(question)
    assert settled_by(outcomes, order, until=until) == settled_one_by_one(outcomes, until)


def test_a_trial_that_takes_long_is_waited_for() -> None:
    """The trials that lose are slow: a rule that counted what has ended would say yes."""
    outcomes = "LLLLLLLL" + "." * 52
    quick = range(8, 60)
    assert UNTIL.answer(0, len(quick)) is Answer.YES
    assert settled_by(outcomes, quick) is None
    assert settled_by(outcomes, [*quick, *range(8)]) == settled_one_by_one(outcomes)
    assert settled_one_by_one(outcomes) == Settled(answer=Answer.NO, events=5, trials=5)


def test_inconclusive_trials_count_for_nothing_and_hold_nothing_up() -> None:
    outcomes = "?." * 30
    found = settled_by(outcomes, range(60))
    assert found == Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert settled_by("?" * 60, range(60)) is None


def test_it_settles_once_and_says_so_in_words() -> None:
    specs = draw_trials([ASKED, OTHER], trials=FEWEST + 3, run_seed=1, load_ms=500)
    stopping = Stopping(UNTIL, specs)
    said = [stopping.take(ASKED, record_of(spec, ".")) for spec in specs if spec.cell == ASKED]
    assert [place for place, settles in enumerate(said) if settles] == [FEWEST - 1]
    assert stopping.in_words() == "loss upper<0.3: yes 1, unanswered 1"


class FakeMember:
    """A worker that needs no machines: each trial's outcome is its cell's, by its index."""

    outcome: Callable[[TrialSpec], str]
    refusals: int
    begun: list[TrialSpec]
    ready: Callable[[TrialSpec], None]

    def __init__(self, orders: WorkerOrders, *, tell: Callable[[str, str], None]) -> None:
        self.is_running = False

    def start(self) -> None:
        if type(self).refusals > 0:
            type(self).refusals -= 1
            raise HarnessError("refused")
        self.is_running = True

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        self.begun.append(spec)
        type(self).ready(spec)
        return record_of(spec, type(self).outcome(spec))

    def kill(self) -> None:
        self.is_running = False


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> type[FakeMember]:
    class Fresh(FakeMember):
        outcome = staticmethod(lambda spec: "." if spec.cell == ASKED else "L")
        ready = staticmethod(lambda spec: None)
        refusals = 0
        begun: list[TrialSpec] = []  # noqa: RUF012  one list a test

    monkeypatch.setattr("torture.campaign.campaign.WorkerController", Fresh)
    return Fresh


def campaign_of(
    folder: Path, *, cells: Sequence[Cell], jobs: int, until: Until | None = UNTIL
) -> Campaign:
    specs = draw_trials(cells, trials=60, run_seed=1, load_ms=500)
    return Campaign(
        run=Run(folder=folder), specs=specs, jobs=jobs, keep=EvidencePolicy.ALL,
        lab=LabSettings(warm_states=folder), scratch=folder, until=until,
    )  # fmt: skip


def test_an_answered_cell_gets_no_more_trials_and_others_go_on(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    campaign = campaign_of(tmp_path, cells=[ASKED, OTHER], jobs=2)
    assert campaign.total == 120
    campaign.start()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    assert campaign.wait_for(OTHER, timeout_s=DEADLINE_S)
    campaign.stop()
    records = read_records(tmp_path / "trials.jsonl").records
    asked = [record for record in records if record.cell == ASKED.name]
    assert FEWEST <= len(asked) <= FEWEST + 2  # one that each worker may have been at
    lost = settled_one_by_one("L" * 60)
    assert lost is not None
    assert lost.trials <= len(records) - len(asked) <= lost.trials + 2
    assert campaign.total == len(records) == len(controller.begun)
    assert campaign.settled[ASKED] == Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert campaign.settled[OTHER] == lost
    assert lost.answer is Answer.NO
    assert campaign.answers == "loss upper<0.3: yes 1, no 1"


def test_a_cell_that_cannot_answer_gets_all_its_trials(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    controller.outcome = staticmethod(lambda spec: "..L"[spec.index % 3])
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=2)
    campaign.start()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert campaign.total == len(campaign.records) == 60
    assert campaign.answers == "loss upper<0.3: unanswered 1"


def test_without_a_question_every_trial_runs(tmp_path: Path, controller: type[FakeMember]) -> None:
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=2, until=None)
    campaign.start()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert campaign.total == len(campaign.records) == 60
    assert (campaign.settled, campaign.answers) == ({}, "")


def test_a_slow_first_trial_holds_the_answer_and_is_recorded(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    """While it is under way others end cleanly, more than enough of them; it then says what counts."""
    go_on, many_ended = threading.Event(), threading.Event()
    quick = FEWEST + 20

    def ready(spec: TrialSpec) -> None:
        if spec.index == 0:
            assert go_on.wait(DEADLINE_S)
        if spec.index == quick:
            many_ended.set()
            assert go_on.wait(DEADLINE_S)

    controller.ready = staticmethod(ready)
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=2)
    campaign.start()
    assert many_ended.wait(DEADLINE_S)
    assert len(campaign.records) == quick - 1 > FEWEST
    assert (campaign.settled, campaign.total) == ({}, 60)
    assert not campaign.wait_for(ASKED, timeout_s=0.05)
    go_on.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert campaign.settled[ASKED] == Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert campaign.total == len(campaign.records) < 60
    assert {spec.index for spec in controller.begun} == set(range(campaign.total))


def test_the_wait_lasts_until_trials_under_way_have_ended(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    last_begun, go_on = threading.Event(), threading.Event()

    def ready(spec: TrialSpec) -> None:
        if spec.index == FEWEST - 1:
            assert last_begun.wait(DEADLINE_S)
        if spec.index == FEWEST:
            last_begun.set()
            assert go_on.wait(DEADLINE_S)

    controller.ready = staticmethod(ready)
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=2)
    campaign.start()
    assert last_begun.wait(DEADLINE_S)
    assert not campaign.wait_for(ASKED, timeout_s=0.3)
    assert campaign.total == FEWEST + 1
    go_on.set()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert len(campaign.records) == FEWEST + 1


def test_a_trial_that_a_worker_could_not_begin_goes_to_another(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    controller.refusals = 2  # as many as make a worker give up
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=2)
    campaign.start()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    campaign.stop()
    assert campaign.total == len(campaign.records)
    assert campaign.settled[ASKED].trials == FEWEST


def test_one_that_is_given_back_after_the_answer_is_dropped(
    tmp_path: Path, controller: type[FakeMember]
) -> None:
    campaign = campaign_of(tmp_path, cells=[ASKED], jobs=1)
    spare = replace(SPECS[0], index=60)
    campaign.start()
    assert campaign.wait_for(ASKED, timeout_s=DEADLINE_S)
    total = campaign.total
    campaign._total += 1
    campaign._left_of_cell[ASKED] += 1
    campaign._give_back(spare)
    assert campaign.total == total
    assert campaign.wait_for(ASKED, timeout_s=0)
    campaign.stop()

"""Workers that need no machines and that refuse, die, hang and wait: what a campaign makes of it.

Places whose workers come and go: late ones join, and no host alone makes a trial inconclusive.
"""

from __future__ import annotations

import errno
import json
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.fake_workers import (
    ASKED,
    DEADLINE_S,
    FEWEST,
    OTHER,
    FakeSite,
    campaign_of,
    play,
    refusing,
    specs_of,
    until,
)
from suites.selftest.unit.good_evidence import RECORDED
from suites.selftest.unit.trials.test_campaign import play_in_vain
from torture.choices.matrix.cells import Cell
from torture.deadlines import wait_until_true
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import CUT, SPEC, TOOLS, Step
from torture.facts.evidence.manifest import MANIFEST
from torture.facts.linux.kernels import Kernels
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.campaign.campaign import DeadTries, WorkerState


def test_a_trial_that_a_worker_could_not_begin_goes_to_another(tmp_path: Path) -> None:
    schedule = until(ASKED)
    site = FakeSite(before_start=refusing(2))  # as many as make a worker give up
    campaign = campaign_of(tmp_path, schedule, site)
    assert len(play(campaign, ASKED)) == campaign.total
    assert schedule.settled[ASKED].trials == FEWEST


def test_a_worker_waits_for_a_trial_that_another_may_still_give_back(tmp_path: Path) -> None:
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


def test_a_worker_that_dies_three_times_costs_its_trial_and_no_more(tmp_path: Path) -> None:
    specs = specs_of(ASKED, trials=4)
    site = FakeSite(outcome=lambda spec: ".D.."[spec.index])
    records = play(campaign_of(tmp_path, FixedSchedule(specs), site, jobs=1), ASKED)
    assert [record.verdict for record in records] == [
        Verdict.INTACT, Verdict.INCONCLUSIVE, Verdict.INTACT, Verdict.INTACT,
    ]  # fmt: skip
    assert [record.dead_tries for record in records] == [0, 3, 0, 0]
    assert records[1].machinery_failed
    for words in ("a worker died", "read w0.log", f"evidence: trials/{specs[1].trial}"):
        assert words in (records[1].error or "")
    ran = [[spec.index for spec in worker.ran] for worker in site.controllers]
    assert ran == [[0, 1], [1], [1], [2, 3]]
    assert not any(worker.is_running for worker in site.controllers)


@pytest.mark.parametrize(("outcome", "workers"), [("M", 2), ("?", 1)])
def test_a_fault_of_the_machinery_costs_the_worker_its_sandbox(
    tmp_path: Path, outcome: str, workers: int
) -> None:
    site = FakeSite(outcome=lambda spec: outcome if spec.index == 0 else ".")
    schedule = FixedSchedule(specs_of(ASKED, trials=3))
    play(campaign_of(tmp_path, schedule, site, jobs=1), ASKED)
    assert len(site.controllers) == workers


def test_a_stopped_run_records_no_trial_that_still_ran(tmp_path: Path) -> None:
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
    play_in_vain(campaign, match="refused")
    assert (campaign.records, campaign.total) == ((), 60)
    assert len(site.controllers) == 4  # each worker tries twice


def test_a_worker_that_fails_in_an_unknown_way_gives_its_trial_back(tmp_path: Path) -> None:
    def start(number: int) -> None:
        if number == 0:
            raise OSError("no space left")

    site = FakeSite(before_start=start)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=8)), site)
    assert len(play(campaign, ASKED)) == 8


def test_the_stage_that_is_shown_is_the_workers_last_word(tmp_path: Path) -> None:
    spec = specs_of(ASKED, trials=1)[0]
    seen: list[dict[int, WorkerState]] = []
    site = FakeSite(before_trial=lambda _spec: seen.append(campaign.states))
    campaign = campaign_of(tmp_path, FixedSchedule([spec]), site)
    play(campaign, ASKED)
    assert seen == [{0: WorkerState(trial=spec.trial, stage="load")}]


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
    play_in_vain(campaign, match="ended before its schedule")


def test_a_run_that_cannot_keep_records_says_why_and_does_not_wait_for_another_worker(
    tmp_path: Path,
) -> None:
    site = FakeSite(own_slots={0}, waits_s=DEADLINE_S)
    campaign = campaign_of(tmp_path / "missing", FixedSchedule(specs_of(ASKED, trials=2)), site)
    why = r"the run cannot go on.*FileNotFoundError"
    play_in_vain(campaign, match=why, timeout_s=DEADLINE_S / 3)


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
    play_in_vain(campaign, match="the run cannot go on", timeout_s=DEADLINE_S / 3)
    assert not any(worker.is_running for worker in site.controllers)


def test_a_place_that_is_gone_costs_no_trial(tmp_path: Path) -> None:
    """Else three lost tries of each would make it inconclusive."""
    site = FakeSite(outcome=lambda _spec: "D", waits_s=DEADLINE_S)

    def lose(_spec: TrialSpec) -> None:
        site.failure = HarnessError("the scheduler is gone")

    site.before_trial = lose
    site.before_start = lambda _number: _refuse_once_gone(site)
    campaign = campaign_of(tmp_path, FixedSchedule(specs_of(ASKED, trials=6)), site)
    play_in_vain(campaign, match="the scheduler is gone")
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


# A trial whose worker dies is begun again, in an empty folder, unless its evidence says something.

DIED = HarnessError("a worker died of SIGKILL", hint="read w0.log")
ROLLED_BACK = "rolled-back.iscsi-disabled-noslog-btrfs-bothdie.0000-f6704eece112861c"
REPAIRED = "repaired.iscsi-always-lost-ext4-bothdie.0000-4f1a0a2f9eee5c8b"
UNREPAIRABLE = "unrepairable.iscsi-standard-noslog-nocacheflush-xfs-bothdie.0001-6bacd376bb27f342"
INTACT = "intact.iscsi-always-noslog-snapshot-ext4-bothdie.0000-2ffecc458185c68b"


Left = Callable[..., TrialSpec]


@pytest.fixture
def left(tmp_path: Path) -> Left:
    """Puts the evidence of a real trial into the run, as its worker left it; without its manifest."""

    def put(recorded: str, *, is_complete: bool = False) -> TrialSpec:
        folder = tmp_path / "unpacked"
        with zipfile.ZipFile(RECORDED / "evidence" / f"{recorded}.zip") as packed:
            packed.extractall(folder)
        spec = TrialSpec.from_json(strict_json((folder / SPEC).read_bytes()))
        if not is_complete:
            (folder / MANIFEST).unlink()
        (tmp_path / "trials").mkdir(exist_ok=True)
        folder.rename(tmp_path / "trials" / spec.trial)
        return spec

    return put


def tries_in(folder: Path) -> DeadTries:
    return DeadTries(RunLayout(folder=folder), zfs="2.3.9", linux=Kernels(nas="6.1", client="6.12"))


def record_after(folder: Path, spec: TrialSpec, error: HarnessError = DIED) -> TrialRecord:
    """The record with which this end of a try is the trial's."""
    record = tries_in(folder).record_after(spec, error)
    assert record is not None
    return record


def test_a_loss_that_a_dead_try_shows_stands(tmp_path: Path, left: Left) -> None:
    record = record_after(tmp_path, left(ROLLED_BACK))
    assert record.verdict is Verdict.ROLLED_BACK
    assert record.lost > 0
    assert record.dead_tries == 1
    assert "at least that, its try ended early: a worker died of SIGKILL" in record.reasons


@pytest.mark.parametrize(
    ("recorded", "last"),
    [(REPAIRED, None), (UNREPAIRABLE, Step.FS_MOUNT), (UNREPAIRABLE, Step.FS_CHECK)],
)
def test_damage_that_a_dead_try_shows_stands(
    tmp_path: Path, left: Left, recorded: str, last: Step | None
) -> None:
    """A client's failed writer, a refused mount: whatever the try would still have found."""
    spec = left(recorded)
    folder = tmp_path / "trials" / spec.trial
    lines = (folder / TOOLS).read_bytes().splitlines(keepends=True)
    steps = [strict_json(line)["step"] for line in lines]
    if last is not None:
        (folder / TOOLS).write_bytes(b"".join(lines[: steps.index(last) + 1]))
    assert record_after(tmp_path, spec).verdict.is_damage
    assert folder.exists()


def test_a_dead_try_that_was_complete_stands(tmp_path: Path, left: Left) -> None:
    """Its worker died after the manifest and before the record: nothing is left to find out."""
    record = record_after(tmp_path, left(INTACT, is_complete=True))
    assert record.verdict is Verdict.INTACT


def test_a_dead_try_without_a_manifest_vouches_for_nothing(tmp_path: Path, left: Left) -> None:
    spec = left(INTACT)
    folder = tmp_path / "trials" / spec.trial
    assert tries_in(tmp_path).record_after(spec, DIED) is None
    assert not folder.exists()


def test_a_breach_that_the_audit_of_a_dead_try_found_stands(tmp_path: Path, left: Left) -> None:
    """Without a read-back it is inconclusive; another try might not meet that moment again."""
    spec = left(INTACT)
    folder = tmp_path / "trials" / spec.trial
    cut = strict_json((folder / CUT).read_bytes())
    cut["audit"] |= {"broken": 1, "findings": ["log-chain at event 7: a block was not there"]}
    (folder / CUT).write_text(json.dumps(cut))
    assert record_after(tmp_path, spec).is_breach
    assert folder.exists()


def test_a_trial_that_took_too_long_is_not_begun_again(tmp_path: Path) -> None:
    [spec] = specs_of(ASKED, trials=1)
    late = DeadlineExceeded("the worker took too long")
    assert record_after(tmp_path, spec, late).machinery_failed


def test_a_second_try_gets_an_empty_folder_and_counts_the_first(tmp_path: Path) -> None:
    [spec] = specs_of(ASKED, trials=1)
    folder = tmp_path / "trials" / spec.trial
    outcomes = iter("DD.")

    def leave_a_file(_spec: TrialSpec) -> None:
        folder.mkdir(parents=True)  # raises where an earlier try's folder is still there
        (folder / "ledger.jsonl").write_text("{}\n")

    site = FakeSite(outcome=lambda _spec: next(outcomes), before_trial=leave_a_file)
    [record] = play(campaign_of(tmp_path, FixedSchedule([spec]), site, jobs=1), ASKED)
    assert (record.verdict, record.error, record.dead_tries) == (Verdict.INTACT, None, 2)
    assert len(site.controllers) == 3


def test_evidence_of_an_interrupted_run_is_judged_before_its_trial_begins_again(
    tmp_path: Path, left: Left
) -> None:
    lost = left(ROLLED_BACK, is_complete=True)
    other = replace(specs_of(Cell.parse(lost.cell.name), trials=1)[0], index=7)
    half_done = tmp_path / "trials" / other.trial
    half_done.mkdir()
    (half_done / SPEC).write_text("{}")
    begun: list[bool] = []
    site = FakeSite(before_trial=lambda spec: begun.append((half_done / SPEC).exists()))
    records = play(campaign_of(tmp_path, FixedSchedule([lost, other]), site, jobs=1), lost.cell)
    assert [record.verdict for record in records] == [Verdict.ROLLED_BACK, Verdict.INTACT]
    assert [record.dead_tries for record in records] == [1, 1]
    assert begun == [False]
    assert site.begun == [other]

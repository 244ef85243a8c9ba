"""A cut that confirms a finding is judged as the cut that happened: nothing later was ever heard of.

How often a repair is run: as long as it leaves something, and as much time as it took is left.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import structs

from suites.selftest.unit.audit_story import Story
from suites.selftest.unit.good_evidence import evidence
from suites.selftest.unit.made_records import changed, trial_record
from torture.choices.experiments import FAULTS
from torture.choices.matrix.cells import Cell
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument
from torture.facts.evidence.folder import (
    CUT,
    LEDGER,
    SPEC,
    Completed,
    Step,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import Begin, Cut, Done, cut_mark
from torture.facts.recording.crash_state import CrashState, DiskState, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import Origin
from torture.records.scoring.detection import detect
from torture.records.scoring.judge import judge
from torture.records.tasks import as_json, core_tasks, task_of
from torture.trials.trial import check
from torture.trials.trial.cut import confirm

MADE = Confirmation(
    finding="acknowledged-is-durable at event 7", event=7, t_ms=20.0, marks=2, acknowledged=1,
    view={"schema": 1, "cut": 7},
)  # fmt: skip


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def begin(seq: int) -> dict[str, object]:
    return {"seq": seq, "writer": 0, "op": "append", "file": 0, "blocks": [0], "size": 1}


LEDGER_LINES = (
    line(event="begin", t_ms=10, **begin(1)),
    line(event="done", t_ms=15, seq=1, next=begin(2)),
    line(event="done", t_ms=30, seq=2),
)


def test_the_ledger_ends_with_the_cut_that_was_recovered(tmp_path: Path) -> None:
    write_document(tmp_path, SPEC, {"cell": "c"})
    (tmp_path / LEDGER).write_bytes(LEDGER_LINES[0] + cut_mark(12.0) + b"".join(LEDGER_LINES[1:]))
    assert load_evidence(tmp_path).ledger.acknowledged == 2
    write_document(tmp_path, CUT, CutDocument(t_ms=40.0, confirmed=MADE).as_json())
    ledger = load_evidence(tmp_path).ledger
    assert [type(event) for event in ledger.events] == [Begin, Done, Begin, Cut]
    assert (ledger.acknowledged, ledger.cut_ms) == (1, 20.0)


def test_a_trial_that_confirms_nothing_has_its_whole_ledger() -> None:
    whole = b"".join(LEDGER_LINES)
    assert Confirmation(why_not="the client lived on").ledger_of(whole).acknowledged == 2
    assert not Confirmation(why_not="the client lived on").is_made


def test_a_confirmation_is_read_back_and_old_cuts_confirm_nothing() -> None:
    cut = CutDocument(t_ms=40.0, confirmed=MADE)
    assert CutDocument.from_json(json.loads(json.dumps(cut.as_json()))) == cut
    assert "confirmed" not in CutDocument(t_ms=40.0).as_json()


def test_a_cut_that_confirms_a_finding_is_not_empty_and_says_where_it_was() -> None:
    nothing = AuditDocument(under_way=0, acknowledged_lately=0)
    drawn = CutDocument(audit=nothing)
    assert judge(evidence(cut=drawn)).verdict is Verdict.INCONCLUSIVE
    judgement = judge(evidence(cut=structs.replace(drawn, confirmed=MADE)))
    assert judgement.verdict is Verdict.INTACT
    assert "event 7" in judgement.reasons[0]


def test_a_detection_counts_losses_where_a_finding_was_confirmed() -> None:
    fault = FAULTS["flush-dropped"]
    broken = CutDocument(audit=AuditDocument(broken=1))
    record = trial_record(
        trial="t", cell=fault.cell, axes=Cell.parse(fault.cell).axes, seed=1,
        verdict=Verdict.INTACT, guarantee="safe", origin=Origin.PLANTED, fault=fault.name,
        cut=broken, verdicts={"data": Verdict.INTACT},
    )  # fmt: skip
    confirmed = structs.replace(record, cut=structs.replace(broken, confirmed=MADE))
    lost = changed(confirmed, verdict=Verdict.ROLLED_BACK, verdicts={"data": Verdict.ROLLED_BACK})
    unconfirmed_loss = structs.replace(lost, cut=broken)
    found = detect(fault, [record, confirmed, lost, unconfirmed_loss])
    assert (found.detected, found.confirmed, found.confirmed_lost) == (4, 2, 1)


@dataclass
class _Terms:
    """Of a trial with two disks: all that decides whether its finding can be confirmed."""

    disks: tuple[ShelfDisk, ...] = tuple(
        ShelfDisk(serial=serial, size_mib=1, persistence=Persistence.VOLATILE) for serial in "ab"
    )
    lives_on: bool = True
    acknowledged: int = 2
    in_ledger: int | None = 2
    kept_because: str = ""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """One operation was acknowledged, as it should be."""
    story = Story(folder=tmp_path)
    story.acknowledges(1)
    return story


def confirmed(
    story: Story, terms: _Terms, *, sync: Sync = Sync.STANDARD
) -> tuple[CrashState, CrashState, Confirmation]:
    """The drawn state, and what `confirm` made of it."""
    found = story.audit_of_all(sync=sync)
    last = len(story.events) - 1
    drawn = CrashState(
        recording=story.folder / "life-1",
        cut=last,
        seed=3,
        disks={name: DiskState(policy=Policy.TORN) for name in ("a", "b")},
    )
    return drawn, *confirm(
        story.recorded(),
        found,
        drawn=drawn,
        t_ms=5_000.0,
        disks=terms.disks,
        lives_on=terms.lives_on,
        acknowledged=terms.acknowledged,
        in_ledger=terms.in_ledger,
        kept_because=terms.kept_because,
    )


def test_the_trial_goes_on_from_the_finding_and_its_client_is_dead(story: Story) -> None:
    done = story.acknowledges(2, is_covered=False)
    story.begins(3)
    story.now_ns += 100_000_000
    drawn, state, said = confirmed(story, _Terms())
    assert said.is_made
    assert (state.cut, state.seed, state.recording) == (done, 3, drawn.recording)
    assert {kept.policy for kept in state.disks.values()} == {Policy.FLUSHED}
    assert (said.event, said.marks, said.acknowledged) == (done, 4, 2)
    assert said.t_ms == pytest.approx(4_900.0, abs=0.01)
    assert said.view == state.as_json() | {"recording": "life-1"}
    assert said.finding.startswith("acknowledged-is-durable at event")


def test_a_run_may_keep_each_drawn_cut(story: Story) -> None:
    story.acknowledges(2, is_covered=False)
    drawn, state, said = confirmed(story, _Terms(kept_because="the run keeps each drawn cut"))
    assert (state, said.is_made) == (drawn, False)
    assert "keeps each drawn cut" in said.why_not
    task = core_tasks.Cut(keeps_drawn=True)
    assert task_of(as_json(task)) == task
    assert as_json(core_tasks.Cut()) == {"kind": "cut"}, "as in older records"


def test_a_client_that_lives_is_let_live_where_only_its_requests_are_at_stake(story: Story) -> None:
    story.completes(story.client_writes(4096))
    assert not confirmed(story, _Terms(), sync=Sync.ALWAYS)[2].is_made
    assert confirmed(story, _Terms(lives_on=False), sync=Sync.ALWAYS)[2].is_made


def test_without_a_finding_the_drawn_cut_is_recovered_and_nothing_is_said(story: Story) -> None:
    drawn, state, said = confirmed(story, _Terms())
    assert state is drawn
    assert said == Confirmation()
    assert not said.is_made


def test_an_acknowledgement_outside_the_recording_cannot_be_taken_back(story: Story) -> None:
    story.acknowledges(2, is_covered=False)
    for terms in (_Terms(acknowledged=3), _Terms(in_ledger=None)):
        drawn, state, said = confirmed(story, terms)
        assert state is drawn
        assert said.why_not
        assert not said.is_made


def test_why_nothing_was_confirmed_is_said(story: Story) -> None:
    story.acknowledges(2, is_covered=False)
    kept = tuple(replace(disk, persistence=Persistence.PLP) for disk in _Terms().disks)
    drawn, state, said = confirmed(story, _Terms(disks=kept))
    assert state is drawn
    assert "keep" in said.why_not


REPAIR, CHECK = ("mend", "/dev/vdb"), ("look", "/dev/vdb")


class Clock:
    """The time of `time.monotonic`: it goes on as commands take time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def runs_of(
    monkeypatch: pytest.MonkeyPatch, *, took_s: float, left: list[int], ends: bool = True
) -> tuple[int, list[str]]:
    """How often the repair was run, and whose writes were diverted; `left`: what each check returns."""
    clock, kept, diverted = Clock(), [], []

    def run_verbose(*argv: str, deadline_s: float) -> Completed:
        is_repair = argv == REPAIR
        clock.now_s += took_s if is_repair else 1
        assert not is_repair or took_s <= deadline_s or not ends, "it would have been given up"
        code = (0 if ends else None) if is_repair else left.pop(0)
        return Completed(
            vm="checker", argv=argv, exit_code=code, stdout="", stderr="", duration_ms=1
        )

    client = Mock(run_verbose=run_verbose)
    client.divert_writes = lambda disk, into: diverted.append(disk.target)
    trial: Any = SimpleNamespace(
        boots_from_disk=False,
        client_disks=(SimpleNamespace(target="vdb"),),
        device="/dev/vdb",
        scratch=Path("scratch"),
        filesystem=Mock(repairs=(REPAIR,), check=CHECK),
    )
    evidence: Any = SimpleNamespace(keep=lambda step, _completed: kept.append(step))
    monkeypatch.setattr(check, "time", clock)
    monkeypatch.setattr(check, "_mount_read_umount", lambda *_, **__: True)
    check._repair(trial, evidence, client)
    assert kept.count(Step.FS_REPAIR) + kept.count(Step.FS_CHECK_AFTER_REPAIR) == len(kept)
    return kept.count(Step.FS_REPAIR), diverted


@pytest.mark.parametrize(
    ("took_s", "left", "runs"),
    [
        (10, [0], 1),
        (10, [1, 0], 2),
        (10, [1, 1, 1], 3),
        (check.REPAIR_DEADLINE_S * 0.6, [1], 1),
        (check.REPAIR_DEADLINE_S * 0.4, [1, 1], 2),
    ],
)
def test_it_is_run_again_while_something_is_left_and_it_can_come_to_its_end(
    monkeypatch: pytest.MonkeyPatch, took_s: float, left: list[int], runs: int
) -> None:
    assert runs_of(monkeypatch, took_s=took_s, left=left) == (runs, ["vdb"])
    assert left == []


def test_one_that_was_given_up_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    took_s = check.REPAIR_DEADLINE_S + 1
    assert runs_of(monkeypatch, took_s=took_s, left=[1], ends=False)[0] == 1

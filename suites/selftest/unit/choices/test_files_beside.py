"""The loads that change files beside the ledger: their programs as the guest runs them, and the judge.

A load that stalls: a cut after it could have lost nothing, and is reported as empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence
from suites.selftest.unit.made_records import record_in
from torture.choices.experiments import FAULTS
from torture.choices.experiments.protocol import Sight
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import churn, clones, records
from torture.choices.workloads._files_beside import FilesBeside, parse_gone
from torture.choices.workloads.protocol import Place, Surroundings
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Ledger
from torture.oracles.verdict.guarantee import Terms, UnreadableError, Verdict
from torture.records.record.trials import TrialRecord, needing_attention
from torture.records.scoring.detection import detect, seen_by
from torture.records.scoring.judge import judge
from torture.trials.plan.draw import draw_planted

FILES = 90
PAGE, FIRST, BEHIND = 4096, 1536, 3072


@pytest.fixture(params=[churn, clones, records])
def load(request: pytest.FixtureRequest) -> FilesBeside:
    load = request.param.CHOICE.value
    assert isinstance(load, FilesBeside)
    return load


def made(load: FilesBeside, directory: Path) -> dict[str, Any]:
    job = load.job(seed=3, place=Place(directory=str(directory))) | {"files": FILES}
    subprocess.run(["sh", "-ec", load.prepare(job)], check=True, timeout=60)
    return job


@pytest.fixture
def job(load: FilesBeside, tmp_path: Path) -> dict[str, Any]:
    return made(load, tmp_path)


def gone(load: FilesBeside, job: dict[str, Any]) -> dict[str, list[int]]:
    read = subprocess.run(load.read_back(job), check=True, timeout=60, capture_output=True)
    return parse_gone(read.stdout.decode(), "readback.json")


def run_until(
    load: FilesBeside, job: dict[str, Any], stop: Path, is_enough: Callable[[], bool]
) -> None:
    """Start the load, run its program until it has done enough, and stop it."""
    guest = Mock()
    load.start(job, Surroundings(guest=guest, open_ledger=Mock(), keep=Mock(), content_of=Mock()))
    ((argv,), _) = guest.start.call_args
    program = subprocess.Popen([*argv[:-1], str(stop)])
    try:
        end = time.monotonic() + 20
        while not is_enough():
            assert time.monotonic() < end
        stop.touch()
        assert program.wait(20) == 0
    finally:
        program.kill()


def changed_at(folder: Path) -> dict[str, int]:
    """When each file below a folder was changed, in nanoseconds; one may go meanwhile."""
    found = {}
    for home, _, files in os.walk(folder):
        for path in (f"{home}/{name}" for name in files):
            with suppress(FileNotFoundError):
                found[path] = Path(path).stat().st_mtime_ns
    return found


def judged(text: str, *, after_repair: bool = False) -> Any:
    load: FilesBeside = churn.CHOICE.value  # type: ignore[assignment]
    name = load.readback_after_repair if after_repair else load.readback
    evidence = Evidence(
        spec={}, cut=CutDocument(), ledger=Ledger(events=()), tools=(), readbacks={name: text}
    )
    return load.judge(evidence, Terms(), after_repair=after_repair)


def test_all_that_was_made_is_there(load: FilesBeside, job: dict[str, Any]) -> None:
    assert sum(path.is_file() for path in Path(job["directory"]).rglob("*")) == FILES
    assert gone(load, job) == {"missing": [], "changed": [], "unreadable": []}


def test_missing_changed_and_truncated_files_are_reported(
    load: FilesBeside, job: dict[str, Any]
) -> None:
    files = {int(path.name): path for path in Path(job["directory"]).rglob("*") if path.is_file()}
    files[7].unlink()
    files[8].write_text("")
    files[9].write_bytes(b"\xff" + files[9].read_bytes()[1:])
    for number in (10, 11):
        files[number].unlink()
    files[10].mkdir()
    os.mkfifo(files[11])
    assert gone(load, job) == {"missing": [7], "changed": [8, 9], "unreadable": [10, 11]}
    found = judged(json.dumps(gone(load, job)))
    assert (found.verdict, found.lost, found.acknowledged) == (Verdict.CORRUPTED, 5, 5)
    assert (found.missing, found.foreign) == (1, 4)
    assert found.reasons[0] == "missing files from before the load (1): 7"
    assert judged(json.dumps(gone(load, job)), after_repair=True) == found


def test_it_changes_files_until_it_is_stopped(
    load: FilesBeside, job: dict[str, Any], tmp_path: Path
) -> None:
    before = changed_at(tmp_path)
    run_until(load, job, tmp_path / "stop", lambda: changed_at(tmp_path) != before)
    assert gone(load, job) == {"missing": [], "changed": [], "unreadable": []}


def test_all_there_is_intact() -> None:
    found = judged('{"missing": [], "changed": [], "unreadable": []}')
    assert (found.verdict, found.lost, found.reasons) == (Verdict.INTACT, 0, ())


def test_many_are_not_all_named() -> None:
    text = json.dumps({"missing": list(range(40)), "changed": [], "unreadable": []})
    (reason,) = judged(text).reasons
    assert reason.endswith("10, 11 and 28 more")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"missing": []}', '{"missing": 3}',
             '{"missing": ["x"], "changed": [], "unreadable": []}'],
)  # fmt: skip
def test_a_read_back_that_is_cut_off_or_garbled_is_no_evidence(text: str) -> None:
    with pytest.raises(UnreadableError, match="does not say"):
        judged(text)


def test_only_records_may_change_and_each_byte_may_be_old_or_new(tmp_path: Path) -> None:
    load: FilesBeside = records.CHOICE.value  # type: ignore[assignment]
    job = made(load, tmp_path)
    files = [Path(job["directory"], str(number)) for number in range(7)]
    at, end = 2 * PAGE + FIRST, 2 * PAGE + BEHIND
    for number, file in enumerate(files):
        old = file.read_bytes()
        new = (f"new {number} 2 ".encode() * PAGE)[FIRST:BEHIND]
        file.write_bytes(
            (
                old[:at] + new + old[end:],
                old[:at] + new[:700] + old[at + 700 :],
                old[:at] + bytes(BEHIND - FIRST) + old[end:],
                old[: at - 1] + b"\0" + new + old[end:],
                old[:at] + new + b"\0" + old[end + 1 :],
                old[:-1],
                old + b"\0",
            )[number]
        )
    assert gone(load, job) == {"missing": [], "changed": [2, 3, 4, 5, 6], "unreadable": []}


def test_the_originals_go_one_by_one_and_new_files_come(tmp_path: Path) -> None:
    load: FilesBeside = clones.CHOICE.value  # type: ignore[assignment]
    job = made(load, tmp_path)
    originals = Path(job["directory"] + "-originals")
    assert len(list(originals.iterdir())) == FILES
    run_until(load, job, tmp_path / "stop", lambda: len(list(originals.iterdir())) <= FILES - 3)
    assert len(list(Path(job["directory"] + "-new").iterdir())) >= 3
    assert gone(load, job) == {"missing": [], "changed": [], "unreadable": []}


FAULT = FAULTS["load-stalled"]


def cut(aim: str, *, lately: int = 0, unflushed: int = 0) -> CutDocument:
    return CutDocument(
        plan={"aim": aim},
        hit=True,
        audit=AuditDocument(under_way=3, acknowledged_lately=lately),
        disks={"data0": DiskAtCut(unflushed=unflushed)},
    )


@pytest.mark.parametrize("aim", ["anywhere", "zil-completed"])
def test_a_load_that_stalled_amid_an_operation_is_silence(aim: str) -> None:
    """Its last acknowledgement is old, and no disk has anything to lose."""
    silent = cut(aim)
    assert (silent.is_stalled, silent.is_at_risk, silent.is_empty) == (True, False, True)
    stalled = judge(replace(evidence(), cut=silent))
    assert stalled.verdict is Verdict.INCONCLUSIVE
    assert stalled.reasons[0].endswith("the load had stalled")


@pytest.mark.parametrize("working", [cut("anywhere", lately=1), cut("anywhere", unflushed=1)])
def test_a_load_that_is_slow_or_has_something_to_lose_is_at_work(working: CutDocument) -> None:
    assert (working.is_stalled, working.is_at_risk, working.is_empty) == (False, True, False)


def record(verdict: Verdict, how: CutDocument) -> TrialRecord:
    return record_in(Cell.parse(FAULT.cell), verdict, fault=FAULT.name, cut=how)


def test_an_empty_cut_is_how_a_stalled_load_is_seen() -> None:
    empty = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    intact = record(Verdict.INTACT, cut("anywhere", lately=1))
    assert seen_by(empty) == {Sight.EMPTY}
    assert seen_by(intact) == frozenset()
    detection = detect(FAULT, [empty, empty, intact])
    assert (detection.detected, detection.by[Sight.EMPTY]) == (2, 2)
    assert detection.is_as_predicted


def test_an_empty_cut_sees_no_other_fault() -> None:
    empty = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    seen = record(Verdict.CORRUPTED, cut("anywhere", lately=1))
    detection = detect(FAULTS["flush-dropped"], [seen, empty, empty, empty])
    assert (detection.detected, detection.cuts, detection.inconclusive) == (1, 4, 3)


def test_a_stalled_load_is_looked_at_beside_conclusive_ones() -> None:
    intact = record(Verdict.INTACT, cut("anywhere", lately=1))
    stalled = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    idle = structs.replace(
        stalled,
        cut=structs.replace(stalled.cut, audit=AuditDocument(under_way=0, acknowledged_lately=0)),
    )
    assert needing_attention([intact, stalled, idle]) == [stalled]


def test_a_fault_may_have_a_load_of_its_own_length() -> None:
    [spec] = draw_planted([FAULT], trials=1, run_seed=1, load_ms=4000)
    assert spec.load_ms == FAULT.load_ms == 20_000
    [usual] = draw_planted([FAULTS["flush-dropped"]], trials=1, run_seed=1, load_ms=4000)
    assert usual.load_ms == 4000

"""The load that changes thousands of files: its programs as the guest runs them, and its judge."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from torture.choices.workloads.churn import CHOICE, parse_gone
from torture.choices.workloads.protocol import Place, Surroundings
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Ledger
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict

CHURN = CHOICE.value
FILES = 90


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    job = CHURN.job(seed=3, place=Place(directory=str(tmp_path))) | {"files": FILES}
    subprocess.run(["sh", "-ec", CHURN.prepare(job)], check=True, timeout=60)
    return job


def gone(job: dict[str, Any]) -> dict[str, list[int]]:
    read = subprocess.run(CHURN.read_back(job), check=True, timeout=60, capture_output=True)
    return parse_gone(read.stdout.decode(), "readback-churn.json")


def judged(text: str, *, after_repair: bool = False) -> Any:
    name = CHURN.readback_after_repair if after_repair else CHURN.readback
    evidence = Evidence(
        spec={}, cut=CutDocument(), ledger=Ledger(events=()), tools=(), readbacks={name: text}
    )
    return CHURN.judge(evidence, Terms(), after_repair=after_repair)


def test_all_that_was_made_is_there(job: dict[str, Any]) -> None:
    assert sum(path.is_file() for path in Path(job["directory"]).rglob("*")) == FILES
    assert gone(job) == {"missing": [], "changed": [], "unreadable": []}


def test_missing_changed_and_truncated_files_are_reported(job: dict[str, Any]) -> None:
    files = {int(path.name): path for path in Path(job["directory"]).rglob("*") if path.is_file()}
    files[7].unlink()
    files[8].write_text("")
    files[9].write_bytes(b"\xff" + files[9].read_bytes()[1:])
    for number in (10, 11):
        files[number].unlink()
    files[10].mkdir()
    os.mkfifo(files[11])
    assert gone(job) == {"missing": [7], "changed": [8, 9], "unreadable": [10, 11]}
    found = judged(json.dumps(gone(job)))
    assert (found.verdict, found.lost, found.acknowledged) == (Verdict.CORRUPTED, 5, 5)
    assert (found.missing, found.foreign) == (1, 4)
    assert found.reasons[0] == "missing files from before the load (1): 7"
    assert judged(json.dumps(gone(job)), after_repair=True) == found


def test_it_changes_files_until_it_is_stopped(job: dict[str, Any], tmp_path: Path) -> None:
    guest = Mock()
    CHURN.start(job, Surroundings(guest=guest, open_ledger=Mock(), keep=Mock(), content_of=Mock()))
    ((argv,), _) = guest.start.call_args
    stop = tmp_path / "stop"
    files = [path for path in Path(job["directory"]).rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    program = subprocess.Popen([*argv[:-1], str(stop)])
    try:
        end = time.monotonic() + 20
        while all(path.stat().st_mtime_ns == before[path] for path in files):
            assert time.monotonic() < end
        stop.touch()
        assert program.wait(20) == 0
    finally:
        program.kill()
    assert gone(job) == {"missing": [], "changed": [], "unreadable": []}


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

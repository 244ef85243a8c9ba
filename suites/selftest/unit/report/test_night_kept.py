"""A shard keeps the evidence of its worst trials; the age of the newest night is known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.verdicts import Verdict
from torture.report.night.kept import trim_evidence, warning_of_age

SAFE = Cell.parse("iscsi-always-noslog-ext4-bothdie")
LOSES = Cell.parse("iscsi-standard-noslog-ext4-nasonly")
NOW = datetime(2026, 11, 25, 1, 30, tzinfo=UTC)


def evidence(run: Path, trial: str, size: int) -> Path:
    folder = run / "trials" / trial / "nas"
    folder.mkdir(parents=True)
    (folder / "recordings.zip").write_bytes(b"x" * size)
    return folder.parent


def test_the_worst_evidence_stays_and_all_records_do(tmp_path: Path) -> None:
    safe, other = make_records(2, cells=[SAFE], seed=1)
    allowed, worse = make_records(2, cells=[LOSES], seed=1)
    records = [
        changed(safe, verdict=Verdict.ROLLED_BACK, lost=1),
        changed(other, verdict=Verdict.INCONCLUSIVE),
        changed(allowed, verdict=Verdict.ROLLED_BACK, lost=1),
        changed(worse, verdict=Verdict.CORRUPTED, lost=1),
    ]
    run = write_run(tmp_path / "night" / "run", records)
    before = (run / "trials.jsonl").read_bytes()
    breach, silent, back, corrupt = [evidence(run, record.trial, 100) for record in records]
    unknown = evidence(run, "no record", 100)
    (tmp_path / "night" / "latest").symlink_to("run")
    kept = trim_evidence(tmp_path / "night", bytes_max=300)
    assert (kept.trials, kept.size_bytes, kept.removed) == (3, 300, 2)
    assert all(folder.is_dir() for folder in (breach, corrupt, back))
    assert not silent.exists()
    assert not unknown.exists()
    assert (run / "trials.jsonl").read_bytes() == before
    assert "evidence of 3 trials" in str(kept)


def test_a_folder_that_is_too_large_makes_room_for_others(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records := list(make_records(2, cells=[SAFE], seed=1)))
    large = evidence(run, records[0].trial, 1000)
    small = evidence(run, records[1].trial, 10)
    assert trim_evidence(tmp_path, bytes_max=100).removed == 1
    assert (large.exists(), small.exists()) == (False, True)


def test_a_shard_without_a_run_has_no_evidence(tmp_path: Path) -> None:
    assert trim_evidence(tmp_path / "none", bytes_max=1).trials == 0


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("2026-11-24T01:23:00+0000", ""),
        ("2026-11-23T01:23:00+0000", "began on 2026-11-23, over 2 days ago"),
        ("", "has no date"),
    ],
)
def test_an_old_night_is_noticed(begun: str, expected: str, tmp_path: Path) -> None:
    last = write_run(tmp_path / "last", make_records(2, cells=[SAFE], seed=1), begun=begun)
    warning = warning_of_age(last, now=NOW, days=2)
    assert expected in warning
    assert bool(warning) == bool(expected)


def test_no_night_at_all_is_noticed(tmp_path: Path) -> None:
    assert "no sound night is remembered" in warning_of_age(tmp_path / "x", now=NOW, days=2)

"""What a trial leaves to replay it by, and that its verdict does not hang on that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.evidence.folder import RECORDINGS
from torture.record.trials import TrialRecord
from torture.trial.archive import archive_recordings, unpack_recordings
from torture.verdict.verdicts import Verdict

CORRUPTED = TrialRecord(
    trial="t", cell="c", axes={}, seed=1, verdict=Verdict.CORRUPTED, guarantee="loses", lost=3,
    reasons=("torn",),
)  # fmt: skip


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    life = tmp_path / "recordings" / "life-1"
    life.mkdir(parents=True)
    (life / "log").write_bytes(b"events")
    (life / "index").write_bytes(b"made again")
    return life.parent


def test_a_loss_can_be_unpacked_again_without_its_index(recordings: Path, tmp_path: Path) -> None:
    assert archive_recordings(CORRUPTED, of=recordings, into=tmp_path) == CORRUPTED
    unpack_recordings(tmp_path, tmp_path / "again")
    assert [path.name for path in (tmp_path / "again" / "life-1").iterdir()] == ["log"]


def test_an_intact_trial_leaves_nothing(recordings: Path, tmp_path: Path) -> None:
    archive_recordings(replace(CORRUPTED, verdict=Verdict.INTACT), of=recordings, into=tmp_path)
    with pytest.raises(HarnessError, match="--live"):
        unpack_recordings(tmp_path, tmp_path / "again")


def test_a_planted_fault_that_nobody_saw_leaves_what_there_was_to_see(
    recordings: Path, tmp_path: Path
) -> None:
    missed = replace(CORRUPTED, verdict=Verdict.INTACT, fault="flush-dropped")
    archive_recordings(missed, of=recordings, into=tmp_path)
    unpack_recordings(tmp_path, tmp_path / "again")
    assert (tmp_path / "again" / "life-1" / "log").exists()


def test_without_room_the_verdict_stands_and_says_so(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / RECORDINGS).symlink_to("/dev/full")
    record = archive_recordings(CORRUPTED, of=recordings, into=tmp_path)
    assert (record.verdict, record.lost) == (Verdict.CORRUPTED, 3)
    assert record.reasons[0] == "torn"
    assert "No space left" in record.reasons[1]
    assert not (tmp_path / RECORDINGS).is_symlink()

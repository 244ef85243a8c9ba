"""A disk of results that is full takes no verdict away, and gives no better one."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.facts.evidence.manifest import MANIFEST_DUE, check_manifest
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring import score as scoring


def no_room(*_: object, **__: object) -> None:
    """The error of every write to a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_loss_stays_one_without_room_for_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = SimpleNamespace(verdict=Verdict.CORRUPTED)
    monkeypatch.setattr(scoring, "write_manifest", no_room)
    monkeypatch.setattr(scoring, "score", lambda _folder, **_timings: lost)
    assert scoring.score_with_manifest(tmp_path, timings={}) is cast("Any", lost)


def test_a_manifest_that_was_due_and_not_written_is_a_complaint(tmp_path: Path) -> None:
    [complaint] = check_manifest(tmp_path, {MANIFEST_DUE: True}).complaints
    assert "cannot be read" in complaint

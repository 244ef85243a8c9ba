"""The exit code of `tools/replay`, over a replay that needs no machines."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.fake_workers import record_of
from torture.checkout import CHECKOUT
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.records.record.trials import Absence, TrialRecord
from torture.trials.plan.draw import draw_trials

[SAFE] = draw_trials(
    [Cell.parse("iscsi-always-noslog-btrfs-bothdie")], trials=1, run_seed=1, load_ms=500
)
SOUND = record_of(SAFE, ".")
Replayed = Callable[[TrialRecord], int]


@pytest.fixture
def replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replayed:
    """Runs the tool's `main` over a replay that gives this record."""

    def run(record: TrialRecord) -> int:
        monkeypatch.setattr("torture.setup.provision.use_environment", lambda: None)
        monkeypatch.setattr("torture.trials.replay.from_record.first_record", lambda *_: SOUND)
        monkeypatch.setattr(
            "torture.trials.replay.replay.replay", lambda *_, **__: (record, tmp_path)
        )
        monkeypatch.setattr(sys, "argv", ["tools/replay", str(tmp_path)])
        monkeypatch.setattr(sys, "path", [*sys.path])
        code: int = runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]()
        return code

    return run


@pytest.mark.parametrize(("outcome", "code"), [(".", 0), ("L", 1), ("C", 1), ("?", 2)])
def test_the_exit_code_tells_how_the_replay_ended(
    replayed: Replayed, outcome: str, code: int
) -> None:
    assert replayed(record_of(SAFE, outcome)) == code


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(SOUND, cut=CutDocument(audit=AuditDocument(broken=2))), "the audit"),
        (replace(SOUND, absence=Absence(unfounded=3)), "3 acknowledgements came while"),
    ],
    ids=["audit", "absence"],
)
def test_a_breach_without_a_loss_is_a_failure_with_its_reason(
    replayed: Replayed, record: TrialRecord, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(record) == 1
    assert said in capsys.readouterr().out


def test_machines_to_hold_get_the_evidence_and_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held: list[tuple[Path, str, str]] = []

    def hold(evidence: Path, *, zfs: str, linux: str) -> int:
        held.append((evidence, zfs, linux))
        return 0

    monkeypatch.setattr("torture.setup.provision.use_environment", lambda: None)
    monkeypatch.setattr("torture.trials.replay.hold.hold", hold)
    argv = ["tools/replay", "--hold", "--zfs", "2.4.4", "--linux", "bookworm", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]() == 0
    assert held == [(tmp_path, "2.4.4", "bookworm")]
    monkeypatch.setattr(sys, "argv", ["tools/replay", "--shell", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]()
    assert "use --hold" in capsys.readouterr().err

"""A preparation that fails leaves its consoles with the trial that made it, and no prepared folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.machines.lab.prepared_folders import PreparedFolders
from torture.records.record.specs import TrialSpec
from torture.trials.trial import prepared
from torture.trials.trial.prepared import ready_machines
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

CELL = Cell.parse("iscsi-always-noslog-btrfs-nasonly")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    made = Trial.begin(
        TrialSpec(cell=CELL, index=0, seed=1, load_ms=1000),
        folder=tmp_path / "evidence",
        scratch=tmp_path / "scratch",
        nas_host="10.77.0.2",
    )
    made.folder.mkdir()
    return made


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    """One whose NAS ends before its agent answers."""

    def start_nas(*, console_log: Path, disks: object) -> None:
        console_log.write_text("torture: 17.02 s: exit code 1 of: modprobe -a zfs\n")
        raise HarnessError("nas stopped by itself", hint=f"read {console_log}")

    return SimpleNamespace(
        network=SimpleNamespace(nas_host="10.77.0.2"),
        sockets=tmp_path,
        prepared=PreparedFolders(tmp_path / "prepared"),
        keys=lambda *, preload: (preload,),
        start_nas=start_nas,
    )


def test_the_console_of_a_failed_preparation_stays_where_its_error_says(
    trial: Trial, lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "set_up_nas", lambda _trial, machines: machines.start_nas(1, ()))
    with (
        closing(Machines(trial=trial, lab=lab)) as machines,
        pytest.raises(HarnessError, match="nas stopped by itself") as failure,
    ):
        ready_machines(trial, machines, EvidenceWriter(folder=trial.folder))
    console = trial.folder / "prepare" / "nas-1.console.log"
    assert failure.value.hint == f"read {console}"
    assert console.read_text().endswith("modprobe -a zfs\n")
    assert [path.suffix for path in (tmp_path / "prepared").iterdir()] == [".lock"]

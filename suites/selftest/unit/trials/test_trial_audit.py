"""The rules that a trial asks of its audit, by its cell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.choices.matrix.cells import FILESYSTEM, Cell
from torture.facts.axes.sync import Sync
from torture.facts.recording.events import Recording
from torture.machines.nas.settings import LAYOUT
from torture.trials.trial import cut
from torture.trials.trial.shared.machines import PowerCut


@pytest.mark.parametrize(
    ("name", "sync", "names_are_volatile"),
    [
        ("smb-standard-noslog-files-bothdie", Sync.STANDARD, True),
        ("smb-always-noslog-files-bothdie", Sync.ALWAYS, False),
        ("nfs4-standard-noslog-files-bothdie", Sync.STANDARD, False),
        ("nfs4-export_async-standard-noslog-files-bothdie", Sync.DISABLED, False),
    ],
)
def test_the_audit_gets_the_promises_of_the_cell(
    name: str, sync: Sync, names_are_volatile: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def audit(_recording: Recording, **words: object) -> None:
        asked.update(words)

    monkeypatch.setattr(cut, "audit", audit)
    monkeypatch.setattr(cut, "completions_before", lambda *_of, **_terms: None)
    cell = Cell.parse(name)
    trial: Any = SimpleNamespace(cell=cell, filesystem=cell[FILESYSTEM])
    machines: Any = SimpleNamespace()
    recording = Recording(folder=tmp_path, disks=(), events=())
    power_cut = PowerCut(recording=recording, seq=0, t_ms=0.0, took_ms=0.0)
    cut._audited(trial, machines, power_cut)
    terms = asked["terms"]
    assert (terms.sync, terms.names_are_volatile) == (sync, names_are_volatile)


def test_a_layout_that_the_audit_saw_change_is_no_setting_that_is_not_in_effect() -> None:
    """The audit's own words say it; without a change the layout was wrong from the start."""
    layout = f"under the load: {LAYOUT}: , not logs"
    sync = "at the end: sync and logbias: disabled latency, not standard latency"
    assert cut._unexplained((layout, sync), ("slog0 left",)) == (sync,)
    assert cut._unexplained((layout, sync), ()) == (layout, sync)

"""A client's look at a content, and a fresh NAS's recovery: parts without machines."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import STATUS, tool
from torture.facts.evidence.folder import Step
from torture.records.scoring.walked import PoolHealth
from torture.trials.trial.walk import content_checks, fresh
from torture.trials.trial.walk.content_checks import ContentChecks


@pytest.mark.parametrize(
    ("is_sound", "left", "is_kept"), [(True, 5, True), (False, 5, False), (True, 1, False)]
)
def test_a_client_with_a_doubtful_check_looks_at_nothing_more(
    is_sound: bool, left: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that has looked at its hundred contents."""
    checks: Any = ContentChecks.__new__(ContentChecks)

    @contextmanager
    def shown(_engine: Any) -> Any:
        yield

    checks._lab = SimpleNamespace(require_host=lambda: None)
    checks._folder, checks._known, checks._left = tmp_path, {}, left
    checks._trial = SimpleNamespace(spec=SimpleNamespace(as_json=dict))
    checks._offer = SimpleNamespace(shown=shown, let_go=lambda _client: None)
    checks._client = SimpleNamespace(must=lambda *_args, **_words: None)
    checks._machines = SimpleNamespace(close=lambda: None)
    checks._reader = SimpleNamespace(run=None, close=lambda: None)
    monkeypatch.setattr(content_checks, "replace", lambda value, **_changes: value)
    monkeypatch.setattr(content_checks, "check", lambda *_args, **_words: is_sound)
    monkeypatch.setattr(content_checks, "load_evidence", lambda folder: folder.name)
    assert checks.inspect("a" * 32, object()) == "a" * 32
    assert (checks.seen("a" * 32), checks.known) == ("a" * 32, 1)
    assert (checks._client is not None) == is_kept


@pytest.mark.parametrize(
    ("status", "health"),
    [
        (STATUS, PoolHealth()),
        (tool(Step.POOL_STATUS, "zpool/status-text-errors"), PoolHealth(state="ONLINE", errors=1)),
    ],
)
def test_a_fresh_nas_counts_the_errors_that_its_pool_knows(status: Any, health: PoolHealth) -> None:
    evidence: Any = SimpleNamespace(output=lambda _step: status)
    assert fresh._health(evidence) == health


@pytest.mark.parametrize("is_back", [True, False])
def test_a_fresh_nas_that_brings_no_pool_back_has_imported_none(
    is_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = lambda *_args, **_words: None  # noqa: E731
    shelf = SimpleNamespace(directory=tmp_path / "shelf", require_healthy=nothing, recording=None)
    machines = SimpleNamespace(
        shelf=shelf,
        close=nothing,
        begin_checker=nothing,
        checker=nothing,
        give_checker_back=nothing,
    )
    back = SimpleNamespace(nas=None) if is_back else None
    monkeypatch.setattr(fresh, "replace", lambda value, **_changes: value)
    monkeypatch.setattr(fresh, "Machines", lambda **_words: machines)
    monkeypatch.setattr(fresh, "bring_nas_back", lambda *_args: back)
    monkeypatch.setattr(fresh, "_health", lambda _shown: PoolHealth())
    for name in ("write_crash_state", "check", "observe_status", "load_recording", "load_evidence"):
        monkeypatch.setattr(fresh, name, nothing)
    trial: Any = SimpleNamespace(spec=SimpleNamespace(as_json=dict))
    lab: Any = SimpleNamespace(zfs=None, require_host=nothing)
    state: Any = None
    shown = fresh.recover_afresh(trial, lab, state, tmp_path / "folder")
    assert shown.is_imported == is_back
    assert shown.health == (PoolHealth() if is_back else None)

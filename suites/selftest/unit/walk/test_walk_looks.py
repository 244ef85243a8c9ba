"""Parts of a walk without machines: a client's looks, the files that states offer, and a NAS's drift."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import STATUS, tool
from torture.choices.matrix.cells import TRANSPORT
from torture.choices.transports.protocol import Traits
from torture.facts.evidence.folder import Step
from torture.features.walk import client_view, recoveries
from torture.features.walk.client_view import ContentChecks, OfferedFiles
from torture.features.walk.documents import WalkDocument
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.features.walk.walk_values import PoolHealth, Times


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
    monkeypatch.setattr(client_view, "replace", lambda value, **_changes: value)
    monkeypatch.setattr(client_view, "check", lambda *_args, **_words: is_sound)
    monkeypatch.setattr(client_view, "load_evidence", lambda folder: folder.name)
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
    assert recoveries._health(evidence) == health


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
    monkeypatch.setattr(recoveries, "replace", lambda value, **_changes: value)
    monkeypatch.setattr(recoveries, "Machines", lambda **_words: machines)
    monkeypatch.setattr(recoveries, "bring_nas_back", lambda *_args: back)
    monkeypatch.setattr(recoveries, "_health", lambda _shown: PoolHealth())
    for name in ("write_crash_state", "check", "observe_status", "load_recording", "load_evidence"):
        monkeypatch.setattr(recoveries, name, nothing)
    trial: Any = SimpleNamespace(spec=SimpleNamespace(as_json=dict))
    lab: Any = SimpleNamespace(zfs=None, require_host=nothing)
    state: Any = None
    shown = recoveries.recover_afresh(trial, lab, state, tmp_path / "folder")
    assert shown.is_imported == is_back
    assert shown.health == (PoolHealth() if is_back else None)


# The files of recovered states: a server is started once, or for each state where it ends
# between.


@pytest.mark.parametrize(
    ("serves_until_let_go", "ran"),
    [
        (False, ["publish", "let go", "let go", "publish", "let go"]),
        (True, ["publish", "let go"] * 3),
    ],
)
def test_a_server_that_was_ended_is_started_for_the_next_state(
    serves_until_let_go: bool, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts: list[str] = []
    monkeypatch.setattr(
        client_view,
        "storage_must",
        lambda _nas, _failure, script, **_words: scripts.append(script),
    )
    transport = SimpleNamespace(
        traits=Traits(ports=(1,), serves_until_let_go=serves_until_let_go),
        publish_script=lambda _options: "publish",
        let_go_script=lambda: "let go",
    )
    trial: Any = SimpleNamespace(transport=transport, volume_options=None, attachment=None)
    files = OfferedFiles(trial)
    first, second = (KernelEngine.__new__(KernelEngine) for _ in range(2))
    first.nas, second.nas = object(), object()  # type: ignore[assignment]
    for engine in (first, first, second):
        with files.shown(engine):
            pass
    assert scripts == ran


def test_servers_that_end_to_let_go_are_the_ones_that_say_so() -> None:
    ending = {
        choice.name
        for choice in TRANSPORT.choices
        if "pkill" in choice.value.let_go_script() and choice.value.traits.gives_files
    }
    assert ending == {
        choice.name for choice in TRANSPORT.choices if choice.value.traits.serves_until_let_go
    }


# The drift of a NAS that stays up, by its recoveries' times and by its memory.


def _after(times_s: list[float], available_mib: Callable[[], int | None]) -> WalkDocument:
    """The document of a walk that looks at its NAS after each recovery."""
    times, document = Times(), WalkDocument()
    for time_s in times_s:
        times._recovering_s.append(time_s)
        document = times.with_drift(document, available_mib=available_mib)
    return document


def test_two_hundred_recoveries_have_a_first_and_a_last_hundred() -> None:
    short = _after([0.1] * 150 + [0.2] * 49, lambda: 500)
    assert (short.first_ms, short.last_ms) == (0, 0)
    longer = _after([0.1] * 150 + [0.2] * 50, lambda: 500)
    assert (longer.first_ms, longer.last_ms) == (100, 150)
    longest = _after([0.1] * 150 + [0.2] * 101, lambda: 500)
    assert (longest.first_ms, longest.last_ms) == (100, 200)


def test_the_memory_is_read_once_after_each_hundred() -> None:
    left = iter((593, 573, 564))
    assert _after([0.1] * 99, lambda: next(left)).nas_available_mib == ()
    assert _after([0.1] * 299, lambda: next(left)).nas_available_mib == (593, 573)


def test_a_nas_that_is_gone_is_read_at_the_next_recovery() -> None:
    left = iter((None, None, 593))
    assert _after([0.1] * 102, lambda: next(left)).nas_available_mib == (593,)


def test_an_engine_without_a_nas_has_no_memory() -> None:
    assert _after([0.1] * 300, lambda: None).nas_available_mib == ()


def test_a_block_counts_even_if_it_fails() -> None:
    times = Times()
    with pytest.raises(ValueError, match="a bad state"), times.recovering():
        raise ValueError("a bad state")
    with times.checking():
        pass
    assert (len(times._recovering_s), len(times._checking_s)) == (1, 1)
    times._recovering_s, times._checking_s = [0.25, 0.5], [0.125]
    document = times.with_sums(WalkDocument())
    assert (document.recovering_ms, document.checking_ms) == (750, 125)

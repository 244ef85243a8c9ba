"""The verdict of a state, and the end of a walk: at its last state, or where it fails before.

A client's looks, the files that states offer, and a NAS's drift.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.facts.shelf_logs import explicit
from suites.selftest.unit.good_evidence import STATUS, tool
from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.transports.protocol import Traits
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Step
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Kind
from torture.features.walk import client_view, judging, recoveries
from torture.features.walk import walk as walk_module
from torture.features.walk.client_view import ContentChecks, OfferedFiles
from torture.features.walk.documents import SetsTaken, WalkDocument
from torture.features.walk.engines.engine import Recovered
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.features.walk.judging import StateJudge
from torture.features.walk.tasks import Walk
from torture.features.walk.walk import walk
from torture.features.walk.walk_values import PoolHealth, StateVerdict, Times
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.trial.shared.resident import StorageFailed

_CELL = Cell.parse("iscsi-always-noslog-ext4-bothdie")
_MARKS = (3, 6)


def _state(cut: int) -> CrashState:
    return CrashState(recording=Path("life-1"), cut=cut, seed=0, disks={"data0": explicit()})


def _end(content: str = "a", **changes: Any) -> Recovered:
    return Recovered(is_imported=True, content=content, health=PoolHealth(), **changes)


class _Judged:
    """A judge whose verdicts say how they came about; the client's looks are counted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **trial: Any) -> None:
        self.inspected: list[str] = []
        self.asked: list[dict[str, Any]] = []
        looks: dict[str, Any] = {}

        def inspect(content: str, _engine: Any) -> Any:
            self.inspected.append(content)
            looks[content] = f"look at {content}"
            return looks[content]

        def verdict_of(_judge: Any, look: Any, state: CrashState, **words: Any) -> StateVerdict:
            self.asked.append(words | {"look": look, "cut": state.cut})
            return StateVerdict(verdict=Verdict.INTACT, acknowledged=state.cut, lost=0, reasons=())

        events = [SimpleNamespace(seq=seq, kind=Kind.MARK) for seq in _MARKS]
        contents: Any = SimpleNamespace(seen=looks.get, inspect=inspect)
        walked: Any = SimpleNamespace(acknowledged_by=lambda state: state.cut)
        cut: Any = SimpleNamespace(recording=SimpleNamespace(events=events))
        (folder / "ledger.jsonl").touch()
        monkeypatch.setattr(judging, "load_evidence", lambda _folder: "the load's evidence")
        monkeypatch.setattr(StateJudge, "verdict_of", verdict_of)
        made: Any = SimpleNamespace(folder=folder, **trial)
        self.judge = StateJudge(made, cut, contents, walked=walked, times=Times())

    def __call__(self, cut: int, end: Recovered) -> StateVerdict:
        engine: Any = object()
        return self.judge.judge(_state(cut), end, engine)


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Judged:
    return _Judged(tmp_path, monkeypatch)


def test_a_content_is_judged_by_the_acknowledgements_before_each_cut(judged: _Judged) -> None:
    """One look at it is enough. A later cut with more acknowledgements asks more of it."""
    assert [judged(cut, _end()).acknowledged for cut in (4, 5, 6, 7, 4)] == [4, 4, 6, 6, 4]
    assert [asked["cut"] for asked in judged.asked] == [4, 6]
    assert judged.inspected == ["a"]


def test_a_content_is_judged_again_where_its_pool_is_less_healthy(judged: _Judged) -> None:
    sick = PoolHealth(errors=1)
    judged(4, _end())
    judged(4, Recovered(is_imported=True, content="a", health=sick))
    assert [asked["health"] for asked in judged.asked] == [PoolHealth(), sick]
    assert judged.inspected == ["a"]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Recovered(is_imported=False, reason="I/O error"), "I/O error"),
        (Recovered(is_imported=False), "the import was refused"),
        (_end(volume_errno=5), "the volume gave error 5"),
    ],
)
def test_a_refusal_is_never_judged_by_a_content(
    end: Recovered, words: str, judged: _Judged
) -> None:
    """Neither where an equal content was read before, nor by its own."""
    judged(4, _end())
    judged(4, end)
    assert judged.inspected == ["a"]
    assert judged.asked[1]["refusal"] == words
    assert judged.asked[1]["is_imported"] == end.is_imported
    assert judged.asked[1]["look"] == "the load's evidence"
    assert judged.judge.is_known(end)


def test_a_content_is_known_once_a_client_has_looked(judged: _Judged) -> None:
    assert not judged.judge.is_known(_end())
    judged(4, _end())
    assert judged.judge.is_known(_end())
    assert not judged.judge.is_known(_end("b"))


@pytest.mark.parametrize(
    ("of", "left", "lacks_disks"),
    [
        (_CELL, ("data0", "slog0"), False),
        (_CELL, ("data0",), True),
        (Cell.parse("iscsi-standard-noslog-raidz1-expand-btrfs-bothdie"), ("data0", "slog0"), True),
    ],
)
def test_a_pool_may_lack_disks_where_the_cut_or_an_administrator_took_them(
    of: Cell,
    left: tuple[str, ...],
    lacks_disks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(judging, "judge_state", lambda _cell, _seen, **words: asked.append(words))
    monkeypatch.setattr(judging, "replace", lambda value, **_changes: value)
    monkeypatch.setattr(
        judging, "load_evidence", lambda _folder: SimpleNamespace(cut=CutDocument())
    )
    (tmp_path / "ledger.jsonl").touch()
    earlier = SimpleNamespace(ledger_of=lambda _ledger: None)
    monkeypatch.setattr(StateJudge, "cut_of", lambda _self, _state: earlier)
    trial: Any = SimpleNamespace(
        folder=tmp_path, cell=of, disks=("data0", "slog0"), disks_left=left
    )
    nothing: Any = SimpleNamespace(recording=SimpleNamespace(events=[]))
    judge = StateJudge(trial, nothing, nothing, walked=nothing, times=Times())
    look: Any = SimpleNamespace(tools=(), readbacks={})
    judge.verdict_of(look, _state(3), is_imported=True, health=PoolHealth(state="DEGRADED"))
    assert asked[0]["lacks_disks"] == lacks_disks
    assert asked[0]["health"] == PoolHealth(state="DEGRADED")


# The end of a walk: at its last state, or where the machinery or the storage fails before.

_LOSS = SimpleNamespace(state="that of the first loss")
_GONE = HarnessError("the NAS is gone\n  its console says more", hint="read it")


class _Walker:
    """Recovers three states, and then ends as the test says."""

    ends_by: HarnessError | None = None

    def __init__(self, *_parts: Any, **_words: Any) -> None:
        self.document = WalkDocument(recovered=3, outcomes={"intact": 2, "corrupted": 1}, depth=1)
        self.losses = SimpleNamespace(first=_LOSS)

    def recover_all(self, *_parts: Any, **_words: Any) -> None:
        if self.ends_by is not None:
            raise self.ends_by

    def next_root(self, _states: Any) -> None:
        return None

    def close(self) -> None:
        pass


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A walk of five states, which returns its loss, and the documents that it keeps."""
    contents = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(walk_module, "Walker", _Walker)
    monkeypatch.setattr(walk_module, "ContentChecks", lambda *_parts: contents)
    monkeypatch.setattr(walk_module, "walked_and_states", lambda *_parts: (None, tuple(range(5))))
    monkeypatch.setattr(walk_module, "_with_torn_labels", lambda *_parts: [])
    sets = SetsTaken(cuts=7, cuts_taken=6)
    monkeypatch.setattr(walk_module, "_sets_taken", lambda *_parts: sets)
    monkeypatch.setattr(walk_module, "in_batches", lambda states: states)
    monkeypatch.setattr(walk_module, "recover_contents_afresh", lambda *_parts, **_words: None)
    spec = SimpleNamespace(seed=1)
    trial: Any = SimpleNamespace(spec=spec, scratch=tmp_path, disks_left=())
    kept: dict[str, Any] = {}
    evidence: Any = SimpleNamespace(write=kept.__setitem__, enter_stage=lambda _stage: None)
    lab = SimpleNamespace(forget_ended=lambda: None)
    machines: Any = SimpleNamespace(lab=lab, shelf=SimpleNamespace(directory=tmp_path))
    cut: Any = None

    def run(*, states: int = 5) -> Any:
        return walk(trial, Walk(states=states, minutes=1), machines, evidence, cut)

    return run, kept


def test_a_walk_to_its_end_says_no_failure(walked: Any) -> None:
    run, kept = walked
    assert run() is _LOSS
    document = kept[WalkDocument.FILE]
    assert (document["distinct"], document["recovered"]) == (5, 3)
    assert "broken_off" not in document
    assert document["rule"] > 0
    assert document["sets"]["cuts_taken"] == 6


def test_a_failure_of_the_machinery_keeps_states_and_loss(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Walker, "ends_by", _GONE)
    run, kept = walked
    assert run() is _LOSS
    document = kept[WalkDocument.FILE]
    assert (document["recovered"], document["broken_off"]) == (3, "the NAS is gone")


def test_a_failure_of_the_storage_ends_the_trial_with_the_states_kept(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = SimpleNamespace(name="nas", spec=SimpleNamespace(console_log="its.log"))
    monkeypatch.setattr(_Walker, "ends_by", StorageFailed("the pool hung", machine=machine))
    run, kept = walked
    with pytest.raises(StorageFailed):
        run()
    document = kept[WalkDocument.FILE]
    assert (document["recovered"], document["broken_off"]) == (3, "the pool hung")


def _nested(
    walked: Any, monkeypatch: pytest.MonkeyPatch, *, verdicts: list[Verdict]
) -> tuple[list[tuple[Any, int]], dict[str, Any]]:
    """The grounds that a walk of 100 states recovers, with the number of states; and its document."""
    run, kept = walked
    grounds: list[tuple[Any, int]] = []
    shown = iter(verdicts)
    judge = SimpleNamespace(verdict_of=lambda *_args, **_kwargs: _verdict(next(shown)))
    root = SimpleNamespace(key=1, cut=7, crash_state=lambda *_args: "a state")
    monkeypatch.setattr(_Walker, "judge", judge, raising=False)
    monkeypatch.setattr(_Walker, "walked", SimpleNamespace(recording=None), raising=False)
    monkeypatch.setattr(_Walker, "show", lambda _self, _text: None, raising=False)
    monkeypatch.setattr(_Walker, "count_fresh", lambda *_args, **_words: None, raising=False)
    monkeypatch.setattr(_Walker, "next_root", lambda _self, _states: root)
    monkeypatch.setattr(
        _Walker,
        "recover_all",
        lambda _self, walked, states, **_words: grounds.append((walked, len(states))),
    )
    fresh = SimpleNamespace(
        recording=SimpleNamespace(events=[1, 2]), evidence=None, is_imported=True, health=None
    )
    monkeypatch.setattr(walk_module, "recover_afresh", lambda *_args: fresh)
    monkeypatch.setattr(walk_module, "_states", lambda *_args, **_words: tuple(range(50)))
    monkeypatch.setattr(
        walk_module, "_walked", lambda *_args, acknowledged=None: SimpleNamespace(
            recording=None, acknowledged=acknowledged
        )
    )  # fmt: skip
    run(states=100)
    return grounds, kept[WalkDocument.FILE]


def test_three_recoveries_in_a_row_are_cut_and_walked(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 states ten of each; they keep all that was acknowledged before the load's cut."""
    grounds, document = _nested(walked, monkeypatch, verdicts=[Verdict.INTACT] * 3)
    assert [number for _, number in grounds[1:]] == [10, 10, 10]
    assert [walked.acknowledged for walked, _ in grounds[1:]] == [7, 7, 7]
    assert document["depth"] == 4


def test_a_recovery_that_loses_something_is_the_last_one_cut(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [Verdict.INTACT, Verdict.CORRUPTED]
    grounds, document = _nested(walked, monkeypatch, verdicts=verdicts)
    assert (len(grounds), document["depth"]) == (2, 2)


def _verdict(verdict: Verdict) -> StateVerdict:
    return StateVerdict(verdict=verdict, acknowledged=5, lost=0, reasons=())


# Parts of a walk without machines: a client's looks, the files that states offer, and a NAS's drift.


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

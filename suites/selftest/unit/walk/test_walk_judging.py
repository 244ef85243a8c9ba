"""The verdict of a state, and the end of a walk: at its last state, or where it fails before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.facts.shelf_logs import explicit
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Kind
from torture.features.walk import judging
from torture.features.walk import walk as walk_module
from torture.features.walk.documents import SetsTaken, WalkDocument
from torture.features.walk.engines.engine import Recovered
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


def test_a_content_is_judged_by_the_acknowledgements_before_each_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look at it is enough. A later cut with more acknowledgements asks more of it."""
    judged = _Judged(tmp_path, monkeypatch)
    assert [judged(cut, _end()).acknowledged for cut in (4, 5, 6, 7, 4)] == [4, 4, 6, 6, 4]
    assert [asked["cut"] for asked in judged.asked] == [4, 6]
    assert judged.inspected == ["a"]


def test_a_content_is_judged_again_where_its_pool_is_less_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = _Judged(tmp_path, monkeypatch)
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
    end: Recovered, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where an equal content was read before, nor by its own."""
    judged = _Judged(tmp_path, monkeypatch)
    judged(4, _end())
    judged(4, end)
    assert judged.inspected == ["a"]
    assert judged.asked[1]["refusal"] == words
    assert judged.asked[1]["is_imported"] == end.is_imported
    assert judged.asked[1]["look"] == "the load's evidence"
    assert judged.judge.is_known(end)


def test_a_content_is_known_once_a_client_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = _Judged(tmp_path, monkeypatch)
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
    assert (kept[WalkDocument.FILE]["distinct"], kept[WalkDocument.FILE]["recovered"]) == (5, 3)
    assert "broken_off" not in kept[WalkDocument.FILE]
    assert kept[WalkDocument.FILE]["rule"] > 0
    assert kept[WalkDocument.FILE]["sets"]["cuts_taken"] == 6


def test_a_failure_of_the_machinery_keeps_states_and_loss(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Walker, "ends_by", _GONE)
    run, kept = walked
    assert run() is _LOSS
    assert (kept[WalkDocument.FILE]["recovered"], kept[WalkDocument.FILE]["broken_off"]) == (
        3,
        "the NAS is gone",
    )


def test_a_failure_of_the_storage_ends_the_trial_with_the_states_kept(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = SimpleNamespace(name="nas", spec=SimpleNamespace(console_log="its.log"))
    monkeypatch.setattr(_Walker, "ends_by", StorageFailed("the pool hung", machine=machine))
    run, kept = walked
    with pytest.raises(StorageFailed):
        run()
    assert (kept[WalkDocument.FILE]["recovered"], kept[WalkDocument.FILE]["broken_off"]) == (
        3,
        "the pool hung",
    )


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

"""The verdict of a state: by its content, its pool's health, and its own acknowledgements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.facts.shelf_logs import explicit
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Kind
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import PoolHealth, StateVerdict
from torture.trials.trial.walk import judging
from torture.trials.trial.walk.engines.engine import Recovered
from torture.trials.trial.walk.judging import StateJudge
from torture.trials.trial.walk.times import Times

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
        ground: Any = SimpleNamespace(acknowledged_by=lambda state: state.cut)
        cut: Any = SimpleNamespace(recording=SimpleNamespace(events=events))
        (folder / "ledger.jsonl").touch()
        monkeypatch.setattr(judging, "load_evidence", lambda _folder: "the load's evidence")
        monkeypatch.setattr(StateJudge, "verdict_of", verdict_of)
        made: Any = SimpleNamespace(folder=folder, **trial)
        self.judge = StateJudge(made, cut, contents, ground=ground, times=Times())

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
    judge = StateJudge(trial, nothing, nothing, ground=nothing, times=Times())
    look: Any = SimpleNamespace(tools=(), readbacks={})
    judge.verdict_of(look, _state(3), is_imported=True, health=PoolHealth(state="DEGRADED"))
    assert asked[0]["lacks_disks"] == lacks_disks
    assert asked[0]["health"] == PoolHealth(state="DEGRADED")

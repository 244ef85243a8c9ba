"""The end of a walk: at its last state, or where the machinery or the storage fails before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.errors import HarnessError
from torture.facts.evidence.walk_document import WALK, SetsTaken, WalkDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import StateVerdict
from torture.records.tasks.walk_task import Walk
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.walk import walk as walk_module
from torture.trials.trial.walk.walk import walk

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
    monkeypatch.setattr(walk_module, "ground_and_states", lambda *_parts: (None, tuple(range(5))))
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
    assert (kept[WALK]["distinct"], kept[WALK]["recovered"]) == (5, 3)
    assert "broken_off" not in kept[WALK]
    assert kept[WALK]["rule"] > 0
    assert kept[WALK]["sets"]["cuts_taken"] == 6


def test_a_failure_of_the_machinery_keeps_states_and_loss(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Walker, "ends_by", _GONE)
    run, kept = walked
    assert run() is _LOSS
    assert (kept[WALK]["recovered"], kept[WALK]["broken_off"]) == (3, "the NAS is gone")


def test_a_failure_of_the_storage_ends_the_trial_with_the_states_kept(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = SimpleNamespace(name="nas", spec=SimpleNamespace(console_log="its.log"))
    monkeypatch.setattr(_Walker, "ends_by", StorageFailed("the pool hung", machine=machine))
    run, kept = walked
    with pytest.raises(StorageFailed):
        run()
    assert (kept[WALK]["recovered"], kept[WALK]["broken_off"]) == (3, "the pool hung")


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
    monkeypatch.setattr(_Walker, "ground", SimpleNamespace(recording=None), raising=False)
    monkeypatch.setattr(_Walker, "show", lambda _self, _text: None, raising=False)
    monkeypatch.setattr(_Walker, "count_fresh", lambda *_args, **_words: None, raising=False)
    monkeypatch.setattr(_Walker, "next_root", lambda _self, _states: root)
    monkeypatch.setattr(
        _Walker,
        "recover_all",
        lambda _self, ground, states, **_words: grounds.append((ground, len(states))),
    )
    fresh = SimpleNamespace(
        recording=SimpleNamespace(events=[1, 2]), evidence=None, is_imported=True, health=None
    )
    monkeypatch.setattr(walk_module, "recover_afresh", lambda *_args: fresh)
    monkeypatch.setattr(walk_module, "_states", lambda *_args, **_words: tuple(range(50)))
    monkeypatch.setattr(
        walk_module, "_ground", lambda *_args, acknowledged=None: SimpleNamespace(
            recording=None, acknowledged=acknowledged
        )
    )  # fmt: skip
    run(states=100)
    return grounds, kept[WALK]


def test_three_recoveries_in_a_row_are_cut_and_walked(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 states ten of each; they keep all that was acknowledged before the load's cut."""
    grounds, document = _nested(walked, monkeypatch, verdicts=[Verdict.INTACT] * 3)
    assert [number for _, number in grounds[1:]] == [10, 10, 10]
    assert [ground.acknowledged for ground, _ in grounds[1:]] == [7, 7, 7]
    assert document["depth"] == 4


def test_a_recovery_that_loses_something_is_the_last_one_cut(
    walked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [Verdict.INTACT, Verdict.CORRUPTED]
    grounds, document = _nested(walked, monkeypatch, verdicts=verdicts)
    assert (len(grounds), document["depth"]) == (2, 2)


def _verdict(verdict: Verdict) -> StateVerdict:
    return StateVerdict(verdict=verdict, acknowledged=5, lost=0, reasons=())

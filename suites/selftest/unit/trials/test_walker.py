"""A walker without machines: the losses that it keeps, and the states whose recovery it cuts."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.errors import HarnessError
from torture.facts.evidence.walk_document import WalkDocument, WalkEngine
from torture.facts.states.states import DistinctState
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import StateVerdict
from torture.trials.trial.walk import walker as walker_module
from torture.trials.trial.walk.engines.engine import Recovered
from torture.trials.trial.walk.walker import Walker

_INTACT = StateVerdict(verdict=Verdict.INTACT, acknowledged=5, lost=0, reasons=())
_OLD = StateVerdict(verdict=Verdict.ROLLED_BACK, acknowledged=5, lost=1, reasons=("1 is old",))
_NO_POOL = StateVerdict(verdict=Verdict.POOL_LOST, acknowledged=5, lost=5, reasons=("no pool",))


def _state(key: int, *dropped: int) -> DistinctState:
    return DistinctState(key=key, cut=key, survivors=(), dropped=dropped)


def _verdict_by_dropped_writes(
    _walker: Walker, state: DistinctState, **_number: Any
) -> StateVerdict:
    """Write 9 loses the pool, write 5 an operation."""
    if 9 in state.dropped:
        return _NO_POOL
    return _OLD if 5 in state.dropped else _INTACT


def _no_cut_leaves_write_7(_recording: Any, state: DistinctState, _disks: Any) -> None:
    if state.survivors == (7,):
        raise HarnessError("no cut leaves this state")


def _walked(states: list[DistinctState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Walker:
    engines: Any = SimpleNamespace(
        reached_new=0, coverage=None, document=WalkDocument(), nas_available_mib=lambda: 500
    )
    recording: Any = SimpleNamespace(events=[], disks=[])
    ground: Any = SimpleNamespace(recording=recording, acknowledged=None)
    trial: Any = SimpleNamespace(
        folder=tmp_path, disks_left=(), spec=SimpleNamespace(walk_engine=WalkEngine.KERNEL)
    )
    (tmp_path / "ledger.jsonl").touch()
    monkeypatch.setattr(walker_module, "load_evidence", lambda _folder: None)
    monkeypatch.setattr(walker_module, "engines_of", lambda *_args, **_words: engines)
    monkeypatch.setattr(DistinctState, "crash_state", lambda state, *_args: state)
    monkeypatch.setattr(walker_module, "require_legal", _no_cut_leaves_write_7)
    monkeypatch.setattr(Walker, "_judge_state", _verdict_by_dropped_writes)
    monkeypatch.setattr(walker_module, "dropped_writes", lambda state, _recording: state.dropped)
    monkeypatch.setattr(Walker, "cut_of", lambda *_args: SimpleNamespace(view={}))
    contents: Any = SimpleNamespace(known=0)
    walker = Walker(
        trial,
        SimpleNamespace(),  # type: ignore[arg-type]  # no machine starts
        SimpleNamespace(recording=recording),  # type: ignore[arg-type]
        contents,
        ground=ground,
        folder=tmp_path,
        show=lambda _text: None,
    )
    walker.recover_all(ground, states, until_s=time.monotonic() + 60)
    return walker


def test_each_kind_of_loss_is_kept_with_its_smallest_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare kind comes last, when twenty losses of another one are kept."""
    states = [_state(number, 3, 5, 7) for number in range(30)] + [_state(99, 2, 9, 11)]
    walker = _walked(states, tmp_path, monkeypatch)
    losses: tuple[Any, ...] = walker.document.losses
    assert [loss.dropped for loss in losses if loss.dropped is not None] == [(5,), (9,)]
    assert len(losses) == 21
    assert losses[-1].verdict == Verdict.POOL_LOST
    assert walker.first_loss is not None


def test_a_loss_in_a_state_that_no_cut_leaves_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in a state as found, nor in the smallest one, nor in one that a fresh NAS recovered."""
    as_found = DistinctState(key=1, cut=1, survivors=(7,), dropped=(5,))
    smallest = _state(1, 5, 7)
    intact = DistinctState(key=2, cut=2, survivors=(7,), dropped=())
    for states in ([as_found], [smallest]):
        with pytest.raises(HarnessError, match="no cut leaves"):
            _walked(states, tmp_path, monkeypatch)
    walker: Any = _walked([intact], tmp_path, monkeypatch)
    with pytest.raises(HarnessError, match="no cut leaves"):
        walker.count_fresh(intact, loses=True, differs=True)
    assert walker.first_loss is None
    assert not walker.document.losses


def test_a_recovery_is_cut_from_a_state_that_lost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [_state(1, 5), _state(2), _state(3, 4)]
    walker = _walked(states, tmp_path, monkeypatch)
    assert walker.next_root(states) is states[1]
    assert walker.next_root(list(reversed(states))) is states[2]
    assert walker.next_root(states[:1]) is None


def test_the_memory_of_the_nas_is_that_of_the_loads_own_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts amid a recovery have another NAS."""
    walker = _walked([_state(1)], tmp_path, monkeypatch)
    walker._times._recovering_s += [0.1] * 200
    amid_recovery: Any = SimpleNamespace(**vars(walker.ground) | {"acknowledged": 3})
    walker.recover_all(amid_recovery, [_state(2)], until_s=time.monotonic() + 60)
    assert not walker.document.nas_available_mib
    own: Any = SimpleNamespace(**vars(walker.ground) | {"acknowledged": None})
    walker.recover_all(own, [_state(3)], until_s=time.monotonic() + 60)
    assert walker.document.nas_available_mib == (500,)
    assert walker.document.recovering_ms == 20_000


@pytest.mark.parametrize(
    ("engine", "known", "amid_recovery", "is_compared"),
    [
        (WalkEngine.BOTH, (), None, True),
        (WalkEngine.BOTH, ("b",), None, True),
        (WalkEngine.BOTH, ("a",), None, False),
        (WalkEngine.BOTH, ("b", "c"), None, False),
        (WalkEngine.BOTH, (), 3, False),
        (WalkEngine.NATIVE, (), None, False),
    ],
)
def test_both_engines_recover_the_first_state_of_a_content_for_a_fresh_nas(
    engine: WalkEngine,
    known: tuple[str, ...],
    amid_recovery: int | None,
    is_compared: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fresh NAS recovers two contents here."""
    walker: Any = _walked([], tmp_path, monkeypatch)
    end = Recovered(is_imported=True, content="a")
    asked: list[bool] = []

    def scout(_state: Any, *, is_compared: Any, **_more: Any) -> Recovered:
        asked.append(is_compared(end))
        return end

    walker._trial.spec.walk_engine, walker._trial.spec.walk_fresh = engine, 2
    walker._engines.scout, walker._engines.proven = scout, lambda _state: None
    walker.ground.acknowledged = amid_recovery
    walker.first_ends.update(dict.fromkeys(known))
    monkeypatch.setattr(Walker, "_judge", lambda *_args: _INTACT)
    walker._scouted(None, number=10, again=False)
    assert asked == [is_compared]

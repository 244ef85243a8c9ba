"""A walk over played engines: each state ends as a function says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.walk.test_walk_engines import engines_of
from torture.errors import HarnessError
from torture.features.walk import judging as losses_module
from torture.features.walk import walker as walker_module
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.engines.engine import Ranges, Recovered
from torture.features.walk.states.states import DistinctState
from torture.features.walk.tasks import Walk
from torture.features.walk.walk_values import PoolHealth, StateVerdict
from torture.features.walk.walker import Walker
from torture.oracles.verdict.guarantee import Verdict

VERDICTS = {
    "good": StateVerdict(verdict=Verdict.INTACT, acknowledged=5, lost=0, reasons=()),
    "old": StateVerdict(verdict=Verdict.ROLLED_BACK, acknowledged=5, lost=1, reasons=("1 is old",)),
    "none": StateVerdict(verdict=Verdict.POOL_LOST, acknowledged=5, lost=5, reasons=("no pool",)),
    "unread": StateVerdict(
        verdict=Verdict.INCONCLUSIVE, acknowledged=5, lost=0, reasons=("unread",)
    ),
}


def state_of(key: int, *dropped: int) -> DistinctState:
    return DistinctState(key=key, cut=key, survivors=(), dropped=dropped)


def by_writes(state: Any) -> str:
    """Write 9 loses the pool, write 5 an operation."""
    return "none" if 9 in state.dropped else "old" if 5 in state.dropped else "good"


def _no_cut_leaves_write_7(_recording: Any, state: DistinctState, _disks: Any) -> None:
    if state.survivors == (7,):
        raise HarnessError("no cut leaves this state")


class PlayedEngine:
    """Recovers states to the contents that a function gives, and remembers the states."""

    def __init__(
        self, content: Callable[[Any], str], proven: Callable[[Any], str] | None = None
    ) -> None:
        self._content = content
        self._proven = proven
        self.recovered: list[Any] = []
        self.ranges = Ranges.whole(1)

    def take_ranges(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def recover(self, state: Any) -> Recovered:
        self.recovered.append(state)
        return end_of(self._content(state))

    def proven(self, state: Any) -> Recovered | None:
        known = self._proven(state) if self._proven is not None and state.cut % 3 else None
        return None if known is None else end_of(known)

    def copy_volume(self, into: Path) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def end_of(content: str) -> Recovered:
    return Recovered(is_imported=True, content=content, health=PoolHealth())


class PlayedWalk:
    """A walker over two engines, and what it did."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        kernel: Callable[[Any], str] = by_writes,
        library: Callable[[Any], str] | None = None,
        proven: Callable[[Any], str] | None = None,
        engine: WalkEngine = WalkEngine.NATIVE,
        fresh: int = 0,
        seed: int = 1,
    ) -> None:
        self.kernel = PlayedEngine(kernel)
        self.library = None if library is None else PlayedEngine(library, proven)
        engines = engines_of(self.kernel, self.library, folder)
        if self.library is not None:
            engines.scout()
        cut_of = lambda _state: SimpleNamespace(view={}, acknowledged=5)  # noqa: E731
        judge = SimpleNamespace(
            judge=lambda _state, end, _engine: VERDICTS[end.content],
            is_known=lambda end_of: True,
            cut_of=cut_of,
            hung=None,
        )
        recording: Any = SimpleNamespace(events=[], disks=[])
        walked: Any = SimpleNamespace(recording=recording, acknowledged=None)
        self.walked = walked
        trial: Any = SimpleNamespace(disks_left=(), spec=SimpleNamespace(seed=seed))
        monkeypatch.setattr(walker_module, "engines_of", lambda *_args, **_words: engines)
        monkeypatch.setattr(walker_module, "StateJudge", lambda *_args, **_words: judge)
        monkeypatch.setattr(DistinctState, "crash_state", lambda state, *_args: state)
        monkeypatch.setattr(losses_module, "require_legal", _no_cut_leaves_write_7)
        monkeypatch.setattr(
            losses_module, "dropped_writes", lambda state, _recording: state.dropped
        )
        anything: Any = SimpleNamespace(known=0)
        self.walker = Walker(
            trial,
            Walk(states=0, engine=engine, fresh=fresh),
            anything,
            anything,
            anything,
            walked=self.walked,
            folder=folder,
            show=lambda _text: None,
        )

    def over(
        self, states: Sequence[DistinctState], *, acknowledged: int | None = None
    ) -> WalkDocument:
        walked: Any = SimpleNamespace(recording=self.walked.recording, acknowledged=acknowledged)
        self.walker.recover_all(walked, states, until_s=time.monotonic() + 60)
        document = self.walker.document
        assert sum(document.outcomes.values()) == document.counted
        return document


def plain_states(count: int) -> list[DistinctState]:
    return [state_of(number) for number in range(1, count + 1)]

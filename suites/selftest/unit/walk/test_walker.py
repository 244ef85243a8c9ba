"""A walker without machines: the losses that it keeps, the states that it checks again, its root."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.walk.test_walk_engines import engines_of
from torture.errors import HarnessError
from torture.facts.stats.rates import rate_of
from torture.features.walk import judging as losses_module
from torture.features.walk import walker as walker_module
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.engines.engine import Ranges, Recovered
from torture.features.walk.states.states import DistinctState
from torture.features.walk.tasks import Walk
from torture.features.walk.walk_values import PoolHealth, StateVerdict
from torture.features.walk.walker import CHECKED_MIN, Walker
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
        recording = SimpleNamespace(events=[], disks=[])
        walked: Any = SimpleNamespace(recording=recording, acknowledged=None)
        trial: Any = SimpleNamespace(disks_left=(), spec=SimpleNamespace(seed=seed))
        monkeypatch.setattr(walker_module, "engines_of", lambda *_args, **_words: engines)
        monkeypatch.setattr(walker_module, "StateJudge", lambda *_args, **_words: judge)
        monkeypatch.setattr(DistinctState, "crash_state", lambda state, *_args: state)
        monkeypatch.setattr(losses_module, "require_legal", _no_cut_leaves_write_7)
        monkeypatch.setattr(
            losses_module, "dropped_writes", lambda state, _recording: state.dropped
        )
        anything: Any = SimpleNamespace(known=0)
        self.walked = walked
        self.walker = Walker(
            trial,
            Walk(states=0, engine=engine, fresh=fresh),
            anything,
            anything,
            anything,
            walked=walked,
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


Play = Callable[..., PlayedWalk]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Makes a walker over engines that end as given functions say."""
    return partial(PlayedWalk, tmp_path, monkeypatch)


def test_each_kind_of_loss_is_kept_with_its_smallest_state(play: Play) -> None:
    """A rare kind comes last, when twenty losses of another one are kept."""
    states = [state_of(number, 3, 5, 7) for number in range(30)] + [state_of(99, 2, 9, 11)]
    walk = play()
    losses = walk.over(states).losses
    dropped: list[Any] = [loss.dropped for loss in losses if loss.dropped is not None]
    assert dropped == [(5,), (9,)]
    assert len(losses) == 21
    assert losses[-1].verdict == Verdict.POOL_LOST
    assert walk.walker.losses.first is not None


def test_a_loss_in_a_state_that_no_cut_leaves_is_none(play: Play) -> None:
    """Neither in a state as found, nor in the smallest one, nor in one that a fresh NAS recovered."""
    as_found = DistinctState(key=1, cut=1, survivors=(7,), dropped=(5,))
    smallest = state_of(1, 5, 7)
    intact: Any = DistinctState(key=2, cut=2, survivors=(7,), dropped=())
    for states in ([as_found], [smallest]):
        with pytest.raises(HarnessError, match="no cut leaves"):
            play().over(states)
    walk = play()
    walk.over([intact])
    with pytest.raises(HarnessError, match="no cut leaves"):
        walk.walker.count_fresh(intact, loses=True, differs=True)
    assert walk.walker.losses.first is None
    assert not walk.walker.document.losses


def test_a_recovery_is_cut_from_a_state_that_lost_nothing(play: Play) -> None:
    states = [state_of(1, 5), state_of(2), state_of(3, 4)]
    walk = play()
    walk.over(states)
    assert walk.walker.next_root(states) is states[1]
    assert walk.walker.next_root(list(reversed(states))) is states[2]
    assert walk.walker.next_root(states[:1]) is None


def test_the_memory_of_the_nas_is_that_of_the_loads_own_states(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts amid a recovery have another NAS."""
    walk = play()
    monkeypatch.setattr(walk.walker._engines, "nas_available_mib", lambda: 500)
    walk.over([state_of(1)])
    walk.walker._times._recovering_s += [0.1] * 200
    assert not walk.over([state_of(2)], acknowledged=3).nas_available_mib
    document = walk.over([state_of(3)])
    assert document.nas_available_mib == (500,)
    assert 20_000 <= document.recovering_ms < 20_100
    assert (document.engine, document.amid_recovery, document.by_library) == ("kernel", 1, 0)


def test_so_many_checks_find_one_wrong_state_in_ten() -> None:
    """By the exact interval: with none wrong of so many, at most one in ten is."""
    assert rate_of(0, CHECKED_MIN).high <= 0.1 < rate_of(0, CHECKED_MIN - 1).high


@pytest.mark.parametrize(
    ("engine", "states", "checked"),
    [
        (WalkEngine.NATIVE, 20, 20),
        (WalkEngine.NATIVE, 500, CHECKED_MIN),
        (WalkEngine.BOTH, 500, 50),
    ],
)
def test_the_kernel_recovers_a_drawn_part_of_the_librarys_intact_states(
    engine: WalkEngine, states: int, checked: int, play: Play
) -> None:
    walk = play(library=by_writes, engine=engine)
    document = walk.over(plain_states(states))
    assert (document.engine, document.by_library) == (engine, states)
    assert (document.checked, document.checked_differing) == (checked, 0)
    drawn = [state.key for state in walk.kernel.recovered]
    assert len(set(drawn)) == len(drawn) == checked
    assert len(drawn) == states or drawn != sorted(drawn), "in random order"
    other = play(library=by_writes, engine=engine, seed=2)
    other.over(plain_states(states))
    assert len(drawn) == states or {state.key for state in other.kernel.recovered} != set(drawn)


def test_cuts_amid_a_recovery_have_the_same_share(play: Play) -> None:
    """So the draw is one of all states. Of 50 states 36 of 500 are 3.6."""
    walk = play(library=by_writes)
    walk.over(plain_states(500))
    document = walk.over(plain_states(50), acknowledged=3)
    assert (document.by_library, document.checked) == (550, CHECKED_MIN + 4)


def test_with_both_engines_the_kernel_recovers_the_states_for_a_fresh_nas(play: Play) -> None:
    """The first one of each content, beside the draw, and in no share of it."""
    for engine, beside in ((WalkEngine.BOTH, 1), (WalkEngine.NATIVE, 0)):
        walk = play(library=by_writes, engine=engine, fresh=2)
        document = walk.over(plain_states(900))
        assert document.checked == max(CHECKED_MIN, 90 * beside)
        assert document.compared in (document.checked, document.checked + beside)
        first_ones = [state.key for state in walk.kernel.recovered if state.key == 1]
        assert len(first_ones) >= beside


@pytest.mark.parametrize("content", ["old", "none", "unread"])
def test_a_loss_that_only_the_kernel_shows_is_one(content: str, play: Play) -> None:
    """Sixty states that the library called intact; each that is drawn is lost, and none twice."""
    walk = play(library=lambda _state: "good", kernel=lambda _state: content)
    document = walk.over([state_of(number, 3, 4) for number in range(1, 61)])
    judged = VERDICTS[content]
    assert document.outcomes == {"intact": 60 - CHECKED_MIN, str(judged.verdict): CHECKED_MIN}
    assert (document.checked, document.checked_differing) == (CHECKED_MIN, CHECKED_MIN)
    assert document.states_lost == (CHECKED_MIN if judged.loses else 0)
    assert len(document.losses) == (20 if judged.loses else 0)
    assert (walk.walker.losses.first is not None) == judged.loses
    if judged.loses:
        assert document.losses[0].dropped == (), "it was made smaller by the kernel alone"


def test_one_wrong_proof_in_ten_is_found(play: Play) -> None:
    """In 19 of 20 walks of 400 states by the library itself, and in each by either engine."""
    found = 0
    for seed in range(20):
        walk = play(
            library=lambda state: "old" if state.cut % 10 == 7 else "good",
            kernel=lambda state: "old" if state.cut % 10 == 7 else "good",
            proven=lambda _state: "good",
            seed=seed,
        )
        document = walk.over(plain_states(400))
        assert document.proofs_repeated == CHECKED_MIN
        assert document.proofs_differing or document.checked_differing
        found += document.proofs_differing > 0
        assert document.proven < 400 * 2 // 3
        assert document.states_lost >= document.proofs_differing
    assert found >= 19


def test_wrong_proofs_that_are_all_checked_leave_no_intact_state(play: Play) -> None:
    """Twenty of thirty states are proven; each counts once, and none is the root of a further cut."""
    states = plain_states(30)
    walk = play(
        library=lambda _state: "old", kernel=lambda _state: "old", proven=lambda _state: "good"
    )
    document = walk.over(states)
    assert document.outcomes == {"rolled-back": 30}
    assert (document.recovered, document.proven, document.proofs_differing) == (30, 0, 20)
    assert walk.walker.next_root(states) is None


def test_a_proven_loss_is_recovered_and_counts_as_recovered(play: Play) -> None:
    walk = play(library=lambda _state: "good", proven=lambda _state: "old")
    document = walk.over([state_of(1), state_of(2)])
    assert (document.recovered, document.proven, document.states_lost) == (2, 0, 2)


def test_the_worst_of_two_recoveries_is_the_states_and_the_first_is_the_contents(
    play: Play,
) -> None:
    """The first state is recovered twice. A fresh NAS must come to the verdict of its content."""
    contents = iter(["good", "old", *["good"] * 200])
    walk = play(kernel=lambda _state: next(contents))
    document = walk.over([state_of(1)])
    assert document.outcomes == {"rolled-back": 1}
    assert (document.repeated, document.differing) == (1, 1)
    assert walk.walker.first_ends["good"].verdict == VERDICTS["good"]


def test_a_sound_walk_has_no_difference(play: Play) -> None:
    walk = play(library=by_writes, proven=by_writes)
    document = walk.over(plain_states(400))
    assert document.outcomes == {"intact": 400}
    assert document.proofs_repeated == CHECKED_MIN
    assert document.repeated > 0
    differing = (document.differing, document.proofs_differing, document.disagreeing)
    assert differing == (0, 0, 0)
    assert document.checked_differing == 0


def test_the_library_is_not_checked_when_the_time_is_up(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = play(library=by_writes, proven=by_writes)
    walk.walker.recover_all(walk.walked, plain_states(9), until_s=time.monotonic() - 1)
    assert walk.walker.document.counted == 0
    monkeypatch.setattr(walk.walker, "_is_over", iter([False] * 9 + [True] * 9).__next__)
    walk.walker.recover_all(walk.walked, plain_states(9), until_s=time.monotonic() + 60)
    document = walk.walker.document
    assert (document.counted, document.by_library, document.checked) == (9, 9, 0)

"""The parts of a walk without machines: the smallest loss, the ranges, the engine's report, its terms."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from fixtures.campaigns import terms_in
from suites.selftest.unit.examples import examples
from suites.selftest.unit.fake_workers import ASKED, FakeSite, campaign_of, play, specs_of
from torture.choices.administration.protocol import Moment
from torture.choices.experiments import FAULTS
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import load_recording
from torture.features.walk import walk as walk_module
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.draws import draw_walked
from torture.features.walk.engines.engine import (
    Ranges,
    grains_of,
    grains_with_data,
    recovered_of,
)
from torture.features.walk.judging import Dropped, fewest, smallest
from torture.features.walk.states.states import DistinctState
from torture.features.walk.tasks import FRESH_S, WALKED, Walk
from torture.features.walk.walk import (
    recover_contents_afresh,
    walked_and_states,
    why_not_walked,
)
from torture.features.walk.walk_values import Around, FirstEnd, PoolHealth, StateVerdict
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.plan.cut_plan import Aim
from torture.trials.plan.draw import draw_planted, draw_trials
from torture.trials.plan.trial_plan import draw_plan
from torture.trials.trial.shared.machines import PowerCut
from torture.trials.trial.shared.resident import StorageFailed

_GRAIN = 64 * 1024
_KEPT = StateVerdict(verdict=Verdict.INTACT, acknowledged=5, lost=0, reasons=())
_SAID = {
    "import": 0, "volume": 0, "content": "0" * 32, "import_us": 1, "volume_us": 2, "read_us": 3,
    "state": 7, "errors": 0,
}  # fmt: skip


@given(
    dropped=st.sets(st.integers(0, 60), min_size=1, max_size=24),
    causes=st.lists(st.sets(st.integers(0, 60), max_size=4), min_size=1, max_size=4),
)
@settings(max_examples=examples(200), deadline=None)
def test_no_write_can_be_spared(dropped: set[int], causes: list[set[int]]) -> None:
    """A part loses something if it has all writes of one cause; the answer is such a cause."""

    def loses(part: Dropped) -> bool:
        return any(cause <= set(part) for cause in causes)

    if not loses(tuple(dropped)):
        dropped |= causes[0]
    found = fewest(sorted(dropped), loses, asks_max=10_000)
    assert loses(found)
    assert set(found) <= dropped
    assert not any(loses(tuple(x for x in found if x != write)) for write in found)


def test_the_questions_are_bounded_and_never_repeated() -> None:
    asked: list[Dropped] = []

    def loses(part: Dropped) -> bool:
        asked.append(part)
        return {3, 40} <= set(part)

    found = fewest(range(64), loses, asks_max=12)
    assert len(asked) == len(set(asked)) == 12
    assert {3, 40} <= set(found)
    assert len(found) < 64


def test_a_loss_is_not_shrunk_to_a_smaller_one_of_another_kind() -> None:
    """Writes 3 and 9 together lose the pool; write 5 alone loses an acknowledged write."""
    old = replace(_KEPT, verdict=Verdict.ROLLED_BACK, lost=1, reasons=("1 is old",))
    pool = replace(_KEPT, verdict=Verdict.POOL_LOST, lost=5, reasons=("no pool",))

    def judge(state: DistinctState) -> StateVerdict:
        if {3, 9} <= set(state.dropped):
            return pool
        return old if 5 in state.dropped else _KEPT

    found = DistinctState(key=1, cut=20, survivors=(1,), dropped=tuple(range(2, 12)))
    shrunk = smallest(found, pool, judge, is_over=lambda: False)
    assert shrunk is not None
    assert (shrunk[0].dropped, shrunk[1]) == ((3, 9), pool)
    assert sorted(shrunk[0].survivors) == [1, 2, 4, 5, 6, 7, 8, 10, 11]
    assert smallest(found, pool, lambda _state: _KEPT, is_over=lambda: False) is None


def test_a_loss_is_shrunk_no_further_than_the_time_of_the_walk() -> None:
    """A state that hangs a NAS takes half a minute to recover."""
    lost = StateVerdict(verdict=Verdict.UNAVAILABLE, acknowledged=5, lost=0, reasons=("it hung",))
    asked: list[tuple[int, ...]] = []

    def judge(state: DistinctState) -> StateVerdict:
        asked.append(state.dropped)
        return lost

    found = DistinctState(key=1, cut=20, survivors=(), dropped=tuple(range(8)))
    shrunk = smallest(found, lost, judge, is_over=lambda: len(asked) == 1)
    assert shrunk is not None
    assert (shrunk[0].dropped, len(asked)) == ((), 2)
    asked.clear()
    shrunk = smallest(found, lost, judge, is_over=lambda: True)
    assert shrunk is not None
    assert asked == [shrunk[0].dropped] == [found.dropped]


def test_ranges_are_joined_and_read_in_pieces() -> None:
    ranges = Ranges.of_grains({0, 1, 5})
    assert ranges.spans == ((0, 2 * _GRAIN), (5 * _GRAIN, _GRAIN))
    assert ranges.bytes == 3 * _GRAIN
    assert list(ranges.chunks(_GRAIN + 1)) == [
        (0, _GRAIN + 1),
        (_GRAIN + 1, _GRAIN - 1),
        (5 * _GRAIN, _GRAIN),
    ]
    assert len(ranges.packed) == 16 * len(ranges.spans)


@given(offset=st.integers(0, 10 * _GRAIN), length=st.integers(1, 3 * _GRAIN))
def test_a_write_touches_its_grains(offset: int, length: int) -> None:
    touched = {
        byte // _GRAIN for byte in (*range(offset, offset + length, 512), offset + length - 1)
    }
    assert set(grains_of(offset, length)) == touched


def test_grains_of_zeroes_hold_no_data(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(_GRAIN) + bytes(_GRAIN - 1) + b"x" + bytes(_GRAIN // 2) + b"y")
    assert grains_with_data(image) == {1, 2}


def test_the_engines_report() -> None:
    recovered = recovered_of(_SAID)
    assert (recovered.is_imported, recovered.content, recovered.took_us) == (True, "0" * 32, 6)
    refused = recovered_of({"import": 2052, "reason": "cannot import"})
    assert (refused.is_imported, refused.reason) == (False, "cannot import")
    assert recovered_of(_SAID | {"volume": 5}).volume_errno == 5
    assert recovered.health == PoolHealth(state="ONLINE", errors=0)
    degraded = recovered_of(_SAID | {"state": 6, "errors": 2})
    assert degraded.health == PoolHealth(state="DEGRADED", errors=2)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"import": 2052},
        {"import": 0},
        _SAID | {"import_us": None},
        {"export": 0},
        _SAID | {"export": 16},
        _SAID | {"state": 8},
    ],
)
def test_another_report_is_the_machinerys_failure(answer: dict[str, object]) -> None:
    """Never a state that looks recovered, or lost."""
    with pytest.raises(HarnessError):
        recovered_of(answer)


_WALK = Walk(states=7, engine=WalkEngine.BOTH, fresh=2, minutes=3)


def _walked(load_ms: int = 5000) -> TrialSpec:
    cell = Cell.parse("iscsi-always-noslog-ext4-bothdie")
    (spec,) = draw_walked([cell], recordings=1, walk=_WALK, run_seed=1, load_ms=load_ms)
    return spec


def test_a_walked_trial_is_cut_at_the_end_of_its_load() -> None:
    spec = _walked()
    plan = draw_plan(spec)
    assert (plan.cut.after_ms, plan.cut.aim) == (5000, Aim.ANYWHERE)
    assert (spec.origin, spec.task) == (WALKED, _WALK)
    assert TrialSpec.from_json(spec.as_json()) == spec


def test_a_walked_administration_is_recorded_to_its_end() -> None:
    cell = Cell.parse("iscsi-standard-noslog-raidz1-expand-btrfs-bothdie")
    for index in range(9):
        (spec,) = draw_walked([cell], recordings=1, walk=_WALK, run_seed=index, load_ms=5000)
        cut = draw_plan(spec).administration
        assert cut is not None
        assert (cut.moment, cut.is_after_end) == (Moment.END, True)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("nfs4-standard-noslog-files-bothdie", ""),
        ("smb-standard-noslog-files-bothdie", ""),
        ("fileio-always-noslog-ext4-bothdie", ""),
        ("nfs_image-standard-noslog-btrfs-bothdie", ""),
        ("iscsi-always-noslog-ext4-nasonly", "lives on"),
        ("iscsi-always-lying-ext4-bothdie", "lies"),
        ("iscsi-always-lost-ext4-bothdie", ""),
        ("iscsi-always-noslog-ext4-boot-bothdie", "more than an import"),
        ("iscsi-always-noslog-btrfs-gobonniego-bothdie", "outside the ledger"),
        ("iscsi-always-noslog-ext4-bothdie", ""),
        ("nvme_tcp-standard-plp-btrfs-bothdie", ""),
        ("iscsi-standard-noslog-raidz1-expand-btrfs-bothdie", ""),
        ("iscsi-standard-noslog-rewind-btrfs-bothdie", "more than an import"),
        ("nfs4-qcow2-standard-noslog-ext4-bothdie", "hypervisor's image"),
        ("local-standard-noslog-ext4-bothdie", ""),
    ],
)
def test_cells_that_are_not_walked_say_why(name: str, word: str) -> None:
    why = why_not_walked(Cell.parse(name))
    assert word in why
    assert bool(why) == bool(word)


def test_a_walk_around_a_cut_amid_a_recovery_is_over_its_recording(tmp_path: Path) -> None:
    """Only acknowledgements before the cut of the load count there."""
    recordings = CHECKOUT / "suites" / "selftest" / "recorded" / "shelf"
    load, recovery = (load_recording(recordings / name) for name in ("life-1", "life-2"))
    disks = [SimpleNamespace(serial="data0", persistence=Persistence.VOLATILE)]
    trial: Any = SimpleNamespace(spec=SimpleNamespace(seed=1), disks_left=disks, folder=tmp_path)
    cut = PowerCut(recording=load, seq=len(load.events) - 1, t_ms=0, took_ms=0)
    state = CrashState(recording=recovery.folder, cut=3, seed=0, disks={})
    around = Around(state=state, acknowledged=7)
    walked, states = walked_and_states(trial, cut, around)
    assert (walked.recording.folder, walked.acknowledged) == (recovery.folder, 7)
    assert states
    of_load = replace(around, state=structs.replace(state, recording=load.folder.resolve()))
    walked, _ = walked_and_states(trial, cut, of_load)
    assert (walked.recording, walked.acknowledged) == (load, None)


_LOST = StateVerdict(verdict=Verdict.ROLLED_BACK, acknowledged=5, lost=2, reasons=("f1",))
_LOST_MORE = replace(_LOST, lost=3)


@pytest.mark.parametrize(
    ("known", "shown", "health", "counted"),
    [
        (_KEPT, _KEPT, PoolHealth(), (False, False)),
        (_KEPT, _KEPT, PoolHealth(state="DEGRADED"), (False, True)),
        (_LOST, _LOST, PoolHealth(), (True, False)),
        (_LOST, _LOST_MORE, PoolHealth(), (True, True)),
        (_LOST, _KEPT, PoolHealth(), (False, True)),
        (_KEPT, _LOST, PoolHealth(), (True, True)),
        (_KEPT, None, None, (True, True)),
    ],
)
def test_a_fresh_nas_must_come_to_the_verdict_and_health_of_the_loop(
    known: StateVerdict,
    shown: StateVerdict | None,
    health: PoolHealth | None,
    counted: tuple[bool, bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None: it does not come back. A loss that the loop did not find ends the comparison."""
    counts: list[tuple[bool, bool]] = []
    shown_stages: list[str] = []
    hung: Any = SimpleNamespace(spec=SimpleNamespace(console_log=tmp_path))
    state = CrashState(recording=tmp_path, cut=3, seed=0, disks={})
    end = FirstEnd(state=state, verdict=known, health=PoolHealth())
    walker: Any = SimpleNamespace(
        close=lambda: None,
        show=shown_stages.append,
        document=WalkDocument(),
        first_ends={"a": end, "b": end, "c": end},
        judge=SimpleNamespace(verdict_of=lambda *_args, **_kwargs: shown),
        count_fresh=lambda _state, *, loses, differs: counts.append((loses, differs)),
    )

    def recover_afresh(_trial: Any, _lab: Any, _state: CrashState, folder: Path) -> Any:
        folder.mkdir()
        if shown is None:
            raise StorageFailed("it hung", machine=hung)
        return SimpleNamespace(recording=None, evidence=None, is_imported=True, health=health)

    monkeypatch.setattr(walk_module, "recover_afresh", recover_afresh)
    machines: Any = SimpleNamespace(shelf=SimpleNamespace(directory=tmp_path), lab=None)
    trial: Any = None
    recover_contents_afresh(trial, machines, walker, number=2, until_s=time.monotonic() + 60)
    is_new_loss = counted[0] and known is _KEPT
    assert counts == [counted] * (1 if is_new_loss else 2)
    assert shown_stages == ["recover afresh 1"] * len(counts)


def test_a_planted_fault_keeps_its_aim_where_its_recording_is_walked() -> None:
    """Else a walk would change what the other checks see of it."""
    fault = FAULTS["lies-for-50-ms"]
    walk = Walk(states=9, minutes=3)
    walked, *_ = draw_planted(
        [fault], trials=1, run_seed=1, load_ms=4000, task_of=lambda _cell: walk
    )
    plain, *_ = draw_planted([fault], trials=1, run_seed=1, load_ms=4000)
    assert walked.task == walk
    assert draw_plan(walked) == draw_plan(plain)
    assert draw_plan(plain).cut.aim == fault.aim


# The terms of a run of walks, and the draws of a walk's patience.


def test_a_run_is_known_by_its_walks_too() -> None:
    """Else a run would go on with another number of states, or with another engine."""
    cells = [Cell.parse("iscsi-always-noslog-ext4-bothdie")]
    walk = Walk(states=7, engine=WalkEngine.NATIVE)
    walked = draw_walked(cells, recordings=2, walk=walk, run_seed=1, load_ms=500)
    assert terms_in(walked) == {"walks": [[7, "native"]]}
    assert terms_in(draw_trials(cells, trials=2, run_seed=1, load_ms=500)) == {}


def test_a_long_walk_has_its_time_on_top_of_the_sites_deadline(tmp_path: Path) -> None:
    site = FakeSite()
    plain, walked = specs_of(ASKED, trials=2)
    walked = replace(walked, task=Walk(states=5, minutes=40, fresh=2))
    schedule = FixedSchedule((plain, walked))
    campaign = campaign_of(tmp_path, schedule, site, jobs=1, longer_s=walked.task.longer_s)
    play(campaign, ASKED)
    assert site.deadlines_s == [
        site.trial_deadline_s,
        site.trial_deadline_s + 40 * 60 + 2 * FRESH_S,
    ]
    assert campaign.patience_s >= sum(site.deadlines_s)

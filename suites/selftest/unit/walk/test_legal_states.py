"""The states that a cut may leave: by the rules, and against a slow model."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, explicit, logs
from suites.selftest.unit.walk.legal_states import (
    Pool,
    contents_after,
    drawn_pool,
    faults_of,
    faults_of_walk,
    recording_of,
)
from torture.errors import HarnessError
from torture.facts.recording import crash_state
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    fates,
    require_legal,
    why_illegal,
    write_crash_state,
)
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import Event, RecordedDisk, Recording, ViewSource
from torture.facts.recording.model import survivors, writes_until
from torture.features.walk.states import states as states_module
from torture.features.walk.states.course import survivor_sets
from torture.features.walk.states.states import distinct_states, sets_taken
from torture.trials.plan.trial_plan import draw_disk_states

PLP, VOLATILE, LYING = Persistence.PLP, Persistence.VOLATILE, Persistence.LYING
OF_PROTECTED = {"data0": PLP, "data1": VOLATILE}


@pytest.mark.parametrize("begin", range(0, 200, 20))
def test_the_states_of_random_pools_are_legal_and_complete(begin: int) -> None:
    """A command does the same for 20,000 (`legal_states.py`)."""
    for seed in range(begin, begin + 20):
        assert not faults_of_walk(seed), f"recording {seed}"


@given(log=logs, kinds=st.lists(st.sampled_from([PLP, VOLATILE]), min_size=2, max_size=2))
@settings(max_examples=examples(200), deadline=None)
def test_the_states_of_any_recording_are_legal_and_complete(
    log: Log, kinds: list[Persistence]
) -> None:
    recording = recording_of(log)
    disks = dict(zip(OF_PROTECTED, kinds, strict=True))
    states = distinct_states(recording, disks, first=0, last=log.last, seed=1)
    assert not faults_of(Pool(recording=recording, disks=disks), states)


def test_random_pools_have_everything_that_matters() -> None:
    """Else nothing was shown of it."""
    seen: set[str] = set()
    for seed in range(60):
        pool = drawn_pool(seed)
        events = pool.recording.events
        seen |= {event.kind for event in events}
        seen |= {"FUA" for event in events if event.fua}
        seen |= {f"failed {event.kind}" for event in events if event.error}
        seen |= {"mixed"} if len(set(pool.disks.values())) > 1 else set()
        seen |= {"only plp"} if set(pool.disks.values()) == {PLP} else set()
        flushes = [event for event in events if event.kind.startswith("flush")]
        submits = [event.kind.endswith("submit") for event in flushes]
        seen |= {"flushes in flight"} if (True, True) in pairwise(submits) else set()
        few = [len(list(contents_after(pool, cut))) for cut in range(pool.last + 1)]
        seen |= {"few"} if max(few) > 4 else set()
        seen |= {"many"} if 0 in few else set()
    assert seen >= {
        "write-submit", "zero-submit", "trim-submit", "flush-submit", "FUA", "mixed", "only plp",
        "failed write-complete", "failed zero-complete", "failed trim-complete",
        "failed flush-complete", "flushes in flight", "few", "many",
    }  # fmt: skip


def test_whole_disks_keep_or_lose_all_that_is_undecided() -> None:
    """A leg of a mirror is stale: each disk, and each pair."""
    log = Log()
    writes = {disk: {log.write(at=at, disk=disk) for at in range(3)} for disk in range(4)}
    disks = {f"disk{disk}": VOLATILE for disk in writes}
    recording = recording_of(log, names=tuple(disks))
    states = distinct_states(recording, disks, first=log.last, last=log.last, seed=1)
    left = {frozenset(state.survivors) for state in states if state.torn is None}
    for one in writes:
        for other in writes:
            pair = frozenset(writes[one] | writes[other])
            assert pair in left
            assert frozenset().union(*writes.values()) - pair in left


def test_a_walk_says_how_many_sets_it_took() -> None:
    generator = random.Random(3)
    for _ in range(40):
        _check_sets_taken(drawn_pool(generator.randrange(10_000)))


def _check_sets_taken(pool: Pool) -> None:
    offered: list[tuple[int, int]] = []
    original = survivor_sets

    def counted(writes: Sequence[Event], generator: random.Random) -> Iterator[Sequence[Event]]:
        sets = list(original(writes, generator))
        offered.append((len(writes), len(sets)))
        return iter(sets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states_module, "survivor_sets", counted)
        distinct_states(pool.recording, pool.disks, first=3, last=pool.last, seed=5)
    taken = sets_taken(pool.recording, pool.disks, first=3, last=pool.last, seed=5)
    many = [(count, sets) for count, sets in offered if count > 4]
    assert (taken.cuts, taken.cuts_taken) == (len(offered), len(offered))
    assert taken.cuts_drawn == len(many)
    assert taken.sets_drawn == sum(sets for _, sets in many)
    possible = sum(2**count for count, _ in many)
    assert (abs(2**taken.sets_log2 / possible - 1) < 0.04) if possible else not taken.sets_log2


def test_of_too_many_states_the_seed_draws_the_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states_module, "_STATES_MAX", 20)
    pool = drawn_pool(4)
    taken = sets_taken(pool.recording, pool.disks, first=2, last=pool.last, seed=1)
    assert 0 < taken.cuts_taken < taken.cuts


# The judge of crash states: a state is one that a cut can leave, or the reason is said.


def test_the_judge_of_states_knows_nothing_of_their_maker() -> None:
    tree = ast.parse(Path(crash_state.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules
    assert not [
        module for module in modules if module and module.startswith("torture.facts.states")
    ]
    assert "torture.facts.recording.model" not in modules


@given(log=logs)
@settings(max_examples=examples(200), deadline=None)
def test_a_write_is_open_where_the_shelfs_specification_lets_the_view_decide(log: Log) -> None:
    for cut in range(log.last + 1):
        found = fates(log.events, disk=0, persistence=VOLATILE, cut=cut)
        writes = writes_until(log.events, disk=0, cut=cut)
        assert found.covered == {write.submission for write in writes if write.covered}
        assert found.open == {write.submission for write in writes if not write.covered}
        of_protected = fates(log.events, disk=0, persistence=PLP, cut=cut)
        assert of_protected.covered == found.covered
        assert of_protected.open == {
            write.submission for write in writes if write.completion is None
        }
        assert of_protected.kept == found.open - of_protected.open


@given(log=logs, seed=st.integers(0, 1 << 40), persistence=st.sampled_from([PLP, VOLATILE]))
@settings(max_examples=examples(200), deadline=None)
def test_the_states_that_a_trial_draws_are_legal(
    log: Log, seed: int, persistence: Persistence
) -> None:
    """Of any policy, as the shelf's specification applies it."""
    recording = recording_of(log)
    disks = [ShelfDisk(serial="data0", size_mib=1, persistence=persistence)]
    for draw in (1, 3):
        view = draw_disk_states(disks, seed=seed, draw=draw)["data0"]
        left = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        drawn = CrashState(
            recording=recording.folder, cut=log.last, seed=seed, disks={"data0": view}
        )
        certain = {
            write.submission
            for write in writes_until(log.events, disk=0, cut=log.last, view=view)
            if write.covered
        }
        listed = explicit(*left.items(), *sorted(certain))
        as_list = replace(drawn, disks={"data0": listed})
        assert not why_illegal(recording, drawn, {"data0": persistence})
        assert not why_illegal(recording, as_list, {"data0": persistence})


def state_of(log: Log, view: DiskState, *, cut: int | None = None) -> CrashState:
    last = log.last if cut is None else cut
    return CrashState(recording=Path("life-1"), cut=last, seed=0, disks={"data0": view})


def story() -> tuple[Log, dict[str, int]]:
    """A write of each fate."""
    log = Log()
    writes = {"flushed": log.write(at=0, sectors=2)}
    log.flush()
    writes |= {"fua": log.write(at=1, sectors=2, fua=True), "cached": log.write(at=2, sectors=2)}
    writes |= {"in flight": log.submit(at=4, sectors=2), "failed": log.submit(at=6)}
    log.complete(writes["failed"], error=5)
    return log, writes


@pytest.mark.parametrize(
    ("survivors_", "of_volatile", "of_protected"),
    [
        ([], "", "not there"),
        (["cached"], "", ""),
        (["cached", "in flight"], "", ""),
        (["flushed", "fua", "cached"], "", ""),
        ([("cached", (1,))], "", "only a part"),
        ([("cached", (0, 1)), ("in flight", (0,))], "", ""),
        ([("flushed", (0,)), "cached"], "only a part", "only a part"),
        ([("in flight", (0, 2)), "cached"], "2 sectors", "2 sectors"),
        (["failed", "cached"], "had failed", "had failed"),
    ],
)
def test_a_state_is_legal_or_the_reason_is_said(
    survivors_: list[str | tuple[str, tuple[int, ...]]], of_volatile: str, of_protected: str
) -> None:
    log, writes = story()
    listed = [
        writes[one] if isinstance(one, str) else (writes[one[0]], one[1]) for one in survivors_
    ]
    state = state_of(log, explicit(*listed))
    for persistence, why in ((VOLATILE, of_volatile), (PLP, of_protected)):
        found = why_illegal(recording_of(log), state, {"data0": persistence})
        assert (why in found) if why else not found, (persistence, found)
        disks = [
            ShelfDisk(serial="data0", size_mib=1, persistence=persistence),
            ShelfDisk(serial="data1", size_mib=1, persistence=LYING),
        ]
        with pytest.raises(HarnessError, match="no cut at event") if why else nullcontext():
            require_legal(recording_of(log), state, disks)


@pytest.mark.parametrize(
    ("view", "of_volatile", "of_protected"),
    [
        (DiskState(policy=Policy.ALL), "", ""),
        (DiskState(policy=Policy.FLUSHED), "", "protected"),
        (DiskState(policy=Policy.TORN), "", "protected"),
        (DiskState(policy=Policy.LYING, lying_ms=700), "700 ms", "protected"),
        (DiskState(policy=Policy.SUBSET, lying_ms=700), "700 ms", "protected"),
    ],
)
def test_a_policy_fits_its_disk(view: DiskState, of_volatile: str, of_protected: str) -> None:
    log, _ = story()
    for persistence, why in ((VOLATILE, of_volatile), (PLP, of_protected)):
        found = why_illegal(recording_of(log), state_of(log, view), {"data0": persistence})
        assert (why in found) if why else not found, (persistence, found)


def test_writes_after_the_cut_and_unknown_events_are_no_part_of_a_state() -> None:
    log, writes = story()
    recording = recording_of(log)
    early = state_of(log, explicit(writes["cached"]), cut=writes["flushed"])
    assert "not submitted" in why_illegal(recording, early, {"data0": VOLATILE})
    beyond = state_of(log, explicit(), cut=log.last + 1)
    assert "no event" in why_illegal(recording, beyond, {"data0": VOLATILE})
    assert why_illegal(recording, beyond, {"data1": VOLATILE})
    assert "not there" in why_illegal(recording, state_of(log, explicit()), {"data1": VOLATILE})


def test_disks_that_lie_are_refused() -> None:
    log, _ = story()
    with pytest.raises(ValueError, match="lies"):
        why_illegal(recording_of(log), state_of(log, explicit()), {"data0": LYING})
    with pytest.raises(ValueError, match="data1"):
        distinct_states(
            recording_of(log), {"data0": PLP, "data1": LYING}, first=0, last=log.last, seed=1
        )


def test_a_state_amid_a_recovery_is_as_legal_as_the_one_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, writes = story()
    monkeypatch.setattr(crash_state, "load_recording", lambda _folder: recording_of(log))
    above = Log()
    recording = Recording(
        folder=tmp_path / "life-2",
        disks=(
            RecordedDisk(
                name="data0",
                size=SECTORS * SECTOR,
                sector=SECTOR,
                physical_sector=SECTOR,
                source=ViewSource(view=tmp_path / "cut.view.json", disk="data0"),
            ),
        ),
        events=tuple(above.events),
    )
    for view, why in (
        (explicit(writes["cached"]), ""),
        (explicit(), "began with"),
        (DiskState(policy=Policy.ALL), ""),
        (DiskState(policy=Policy.FLUSHED), "began with"),
    ):
        write_crash_state(tmp_path / "cut.view.json", state_of(log, view))
        found = why_illegal(recording, state_of(above, explicit()), {"data0": PLP})
        assert (why in found) if why else not found

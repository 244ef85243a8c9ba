"""Each state of a walk is one that a cut can leave, on disks of any kind; of a few none is missing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.legal_states import (
    Pool,
    contents_after,
    drawn_pool,
    faults_of,
    faults_of_walk,
)
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, logs
from suites.selftest.unit.facts.test_recording_states import recording_of
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import Event, RecordedDisk, Recording
from torture.facts.states import states as states_module
from torture.facts.states.states import distinct_states, sets_taken
from torture.facts.states.survivor_sets import survivor_sets

PLP, VOLATILE = Persistence.PLP, Persistence.VOLATILE
OF_PROTECTED = {"data0": PLP, "data1": VOLATILE}


@pytest.mark.parametrize("begin", range(0, 200, 20))
def test_the_states_of_random_pools_are_legal_and_complete(begin: int) -> None:
    """A command does the same for 20,000 (`legal_states.py`)."""
    for seed in range(begin, begin + 20):
        assert not faults_of_walk(seed), f"recording {seed}"


@given(log=logs, kinds=st.lists(st.sampled_from([PLP, VOLATILE]), min_size=2, max_size=2))
@settings(max_examples=examples(100), deadline=None)
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


def test_a_completed_write_of_a_protected_disk_is_certain_before_its_flush() -> None:
    """A flush long after it does not make the state without it last until then."""
    log = Log()
    write = log.submit()
    in_flight = log.last
    log.complete(write)
    log.submit(at=1)
    log.flush()
    states = distinct_states(recording_of(log), {"data0": PLP}, first=0, last=log.last, seed=1)
    assert {state.cut for state in states if write in state.dropped} == {in_flight}


def test_whole_disks_keep_or_lose_all_that_is_undecided() -> None:
    """A leg of a mirror is stale: each disk, and each pair."""
    log = Log()
    writes = {disk: {log.write(at=at, disk=disk) for at in range(3)} for disk in range(4)}
    recording = Recording(
        folder=Path("life-1"),
        disks=tuple(
            RecordedDisk(
                name=f"disk{disk}", size=SECTORS * SECTOR, sector=SECTOR, physical_sector=SECTOR
            )
            for disk in writes
        ),
        events=tuple(log.events),
    )
    disks = {f"disk{disk}": VOLATILE for disk in writes}
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

"""The crash states of a cut and of a recording: what a cache keeps, where writes tear, their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given, settings

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, explicit, logs
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import Kind, RecordedDisk, Recording
from torture.facts.recording.model import (
    coin,
    count_crash_states,
    survivors,
    uncovered,
    writes_until,
)
from torture.features.walk.states.states import DistinctState, distinct_states, in_batches

NAMES = ("data0", "data1")
VOLATILE = dict.fromkeys(NAMES, Persistence.VOLATILE)
Owners = tuple[tuple[int, ...], ...]


def recording_of(log: Log, *, names: Sequence[str] = NAMES) -> Recording:
    return Recording(
        folder=Path("life-1"),
        disks=tuple(
            RecordedDisk(name=name, size=SECTORS * SECTOR, sector=SECTOR, physical_sector=SECTOR)
            for name in names
        ),
        events=tuple(log.events),
    )


def owners(log: Log, views: Sequence[DiskState], cut: int) -> Owners:
    """By disk and sector, the last write that is there, one write after the other."""
    return tuple(_owners_of(log, disk, view, cut) for disk, view in enumerate(views))


def _owners_of(log: Log, disk: int, view: DiskState, cut: int) -> tuple[int, ...]:
    held = [0] * SECTORS
    left = survivors(log.events, disk=disk, sector=SECTOR, view=view, cut=cut, seed=0)
    for write in writes_until(log.events, disk=disk, cut=cut, view=view):
        count = write.length // SECTOR
        for place in range(count) if write.covered else left[write.submission]:
            held[write.offset // SECTOR + place] = write.submission
    return tuple(held)


def undecided(log: Log, disk: int, cut: int) -> list[int]:
    view = DiskState(policy=Policy.FLUSHED)
    return [
        write.submission
        for write in uncovered(writes_until(log.events, disk=disk, cut=cut, view=view))
    ]


def subsets(of: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(of, count) for count in range(len(of) + 1))


@given(log=logs)
@settings(max_examples=examples(200), deadline=None)
def test_states_are_distinct_and_complete(log: Log) -> None:
    """Each state has owners of its own, no subset of few writes is missing, and no later cut has it."""
    recording = recording_of(log)
    states = distinct_states(recording, VOLATILE, first=0, last=log.last, seed=1)
    known = {
        owners(log, tuple(state.crash_state(recording, NAMES).disks.values()), state.cut): state
        for state in states
    }
    assert len(known) == len(states)
    for cut in range(log.last + 1):
        open_ = [undecided(log, disk, cut) for disk in range(len(NAMES))]
        if sum(map(len, open_)) > 4:
            continue
        for chosen in subsets([*open_[0], *open_[1]]):
            views = [explicit(*(one for one in chosen if one in of)) for of in open_]
            assert known[owners(log, views, cut)].cut >= cut


@given(log=logs)
@settings(max_examples=examples(200), deadline=None)
def test_the_undecided_writes_of_a_state_survive_or_are_dropped(log: Log) -> None:
    """Of those at its last cut none is left out: a loss is sought among the dropped ones."""
    recording = recording_of(log)
    for state in distinct_states(recording, VOLATILE, first=0, last=log.last, seed=1):
        open_ = {one for disk in range(len(NAMES)) for one in undecided(log, disk, state.cut)}
        assert open_ <= {*state.survivors, *state.dropped}
        assert set(state.dropped) <= open_


def test_a_state_has_the_last_cut_that_can_leave_it() -> None:
    """More operations are acknowledged by then, and what holds there held before."""
    log = Log()
    log.write(at=0)
    log.flush()
    written = log.write(at=1)
    log.submit(at=2)
    states = distinct_states(recording_of(log), VOLATILE, first=0, last=log.last, seed=1)
    cut_of = {state.survivors: state.cut for state in states}
    assert cut_of[()] == cut_of[written,] == log.last


def test_a_protected_disk_keeps_its_completed_writes() -> None:
    log = Log()
    log.write(at=0)
    states = distinct_states(
        recording_of(log), {"data0": Persistence.PLP}, first=log.last, last=log.last, seed=1
    )
    assert [state.survivors for state in states] == [(1,)]


def test_a_protected_disk_lists_no_write_that_a_flush_covers() -> None:
    """A loss says how many writes no flush covered."""
    log = Log()
    log.write(at=0)
    log.flush()
    states = distinct_states(
        recording_of(log), {"data0": Persistence.PLP}, first=log.last, last=log.last, seed=1
    )
    assert [state.survivors for state in states] == [()]


def test_many_writes_are_left_one_by_one() -> None:
    log = Log()
    writes = [log.write(at=place) for place in range(6)]
    states = distinct_states(recording_of(log), VOLATILE, first=log.last, last=log.last, seed=1)
    left = {state.survivors for state in states}
    assert {(), tuple(writes)} < left
    assert all((write,) in left for write in writes)
    assert all(tuple(x for x in writes if x != write) in left for write in writes)


def test_of_hundreds_of_writes_some_are_alone() -> None:
    """A disk without flushes would have a state for each of them, after each event."""
    log = Log()
    writes = [log.write(at=place % SECTORS) for place in range(100)]
    states = distinct_states(recording_of(log), VOLATILE, first=log.last, last=log.last, seed=1)
    alone = {state.survivors for state in states if len(state.survivors) == 1}
    assert 0 < len(alone) <= 64
    assert alone < {(write,) for write in writes}


def test_a_torn_write_keeps_its_first_physical_sectors() -> None:
    """It counts as dropped, for all of it may be what a loss needs; spared, it is whole."""
    log = Log()
    log.write(at=0)
    torn = log.write(at=1, sectors=3)
    recording = recording_of(log)
    states = distinct_states(recording, VOLATILE, first=log.last, last=log.last, seed=1)
    (state,) = [state for state in states if state.torn is not None]
    assert state.torn is not None
    assert (state.torn[0], state.dropped) == (torn, (torn,))
    assert state.torn[1] in ((0,), (0, 1))
    assert state.torn in state.crash_state(recording, NAMES).disks["data0"].survivors
    assert state.dropping_only(()).torn is None
    assert state.dropping_only((torn,)) == state


def test_a_lying_disk_is_refused() -> None:
    with pytest.raises(ValueError, match="data0"):
        distinct_states(recording_of(Log()), {"data0": Persistence.LYING}, first=0, last=0, seed=1)


def test_each_hundred_of_a_walk_has_states_of_all_cuts() -> None:
    """Late cuts take longer to recover: else a NAS would seem to slow down."""
    states = [
        DistinctState(key=key, cut=key * 37 % 250, survivors=(), dropped=()) for key in range(250)
    ]
    ordered = in_batches(states)
    for begin in (0, 100, 200):
        hundred = ordered[begin : begin + 100]
        assert {state.key for state in hundred} == {
            state.key for state in states[begin : begin + 100]
        }
        assert hundred == sorted(hundred, key=lambda state: state.cut)


# The crash states of a cut: what a limited cache keeps, where writes tear, and their number.

DISKS = ("data0", "slog0")


def count_of(log: Log, *, cut: int | None = None, disks: tuple[str, ...] = DISKS) -> int:
    return count_crash_states(
        recording_of(log, names=DISKS), cut=log.last if cut is None else cut, disks=disks
    )


def test_every_choice_of_uncovered_writes_is_a_state() -> None:
    log = Log()
    log.write(fua=True)
    log.write()
    log.submit(at=1)
    log.write(disk=1)
    log.flush(disk=0)
    log.write(at=2)
    log.complete(log.submit(at=3), error=5)
    assert count_of(log) == 2**3, "one in flight, one behind the flush, one on the other disk"


def test_only_writes_until_the_cut_count() -> None:
    log = Log()
    log.write()
    cut = log.last
    log.write(at=1)
    assert (count_of(log, cut=cut), count_of(log)) == (2, 4)


def test_a_disk_that_is_not_asked_for_is_undecided_about() -> None:
    log = Log()
    log.write(disk=0)
    log.write(disk=1)
    assert count_of(log, disks=("slog0",)) == 2


def test_where_all_is_covered_there_is_one_state() -> None:
    log = Log()
    log.write()
    log.flush()
    assert count_of(log) == 1


@pytest.mark.parametrize(("cut", "disks"), [(7, DISKS), (0, ("data1",))])
def test_an_unknown_cut_or_disk_is_refused(cut: int, disks: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"no event 7|no disk 'data1'"):
        count_of(Log(), cut=cut, disks=disks)


@settings(deadline=None, max_examples=examples(50))
@given(log=logs)
def test_the_count_is_the_models(log: Log) -> None:
    undecided = [
        write
        for disk in (0, 1)
        for write in uncovered(writes_until(log.events, disk=disk, cut=log.last))
    ]
    assert count_of(log) == 2 ** len(undecided)


# The writes that a cache with a limit keeps, and the places of tears: the shelf's README, by
# hand.

TORN = DiskState(policy=Policy.TORN)


def test_a_write_is_torn_where_the_disk_has_its_sectors() -> None:
    """One that begins amid a physical sector has a part of it first."""
    log = Log()
    write = log.write(at=1, sectors=4)
    for seed in range(20):
        kept = survivors(log.events, disk=0, sector=1024, view=TORN, cut=log.last, seed=seed)
        assert kept == {write: tuple(p for p in range(3) if coin(seed, write, 1 + p))}
        there = log.held(TORN, seed=seed, sector=1024)
        assert [bool(held) for held in there[:6]] == [
            1 <= place < 5 and place // 2 in kept[write] for place in range(6)
        ]


def test_a_prefix_is_proper() -> None:
    log = Log()
    done, open_ = log.write(at=0, sectors=4), log.submit(at=4, sectors=2)
    view = DiskState(policy=Policy.PREFIX)
    seen = set()
    for seed in range(50):
        kept = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        assert kept[done] in {(0,), (0, 1), (0, 1, 2)}
        assert kept[open_] == (0,)
        seen.add(kept[done])
    assert len(seen) == 3


def _lost_by(view: DiskState, log: Log) -> set[tuple[int, ...]]:
    """Its completed writes that are lost, over many seeds."""
    found = set()
    for seed in range(200):
        kept = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        found.add(tuple(write for write, places in kept.items() if not places))
    return found


def test_the_oldest_or_all_but_few_survive() -> None:
    log = Log()
    one, two, three = (log.write(at=place) for place in range(3))
    assert _lost_by(DiskState(policy=Policy.OLDEST), log) == {
        (), (three,), (two, three), (one, two, three),
    }  # fmt: skip
    assert _lost_by(DiskState(policy=Policy.BUT_FEW), log) == {
        (one,), (two,), (three,), (one, two), (one, three), (two, three),
    }  # fmt: skip


def test_a_cache_forgets_only_the_recent() -> None:
    log = Log()
    old = log.write(at=0)
    log.now_ms = 500
    recent, last = log.write(at=1, sectors=2), log.write(at=3)
    log.now_ms = 1000
    trim = log.write(Kind.TRIM_SUBMIT, at=4)

    def lost(*, held_ms: int | None = None, held_bytes: int | None = None) -> set[tuple[int, ...]]:
        view = DiskState(policy=Policy.FLUSHED, held_ms=held_ms, held_bytes=held_bytes)
        return _lost_by(view, log)

    assert lost() == {(old, recent, last, trim)}
    assert lost(held_ms=1001) == lost()
    assert lost(held_ms=1000) == {(recent, last, trim)}
    assert lost(held_ms=500) == {(trim,)}
    assert lost(held_ms=0) == {()}
    assert lost(held_bytes=3 * SECTOR) == {(recent, last, trim)}
    assert lost(held_bytes=3 * SECTOR - 1) == {(last, trim)}
    assert lost(held_bytes=0) == {(trim,)}

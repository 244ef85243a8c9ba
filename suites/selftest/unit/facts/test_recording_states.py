"""The distinct crash states of a recording, against the shelf's specification."""

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
from torture.facts.recording.events import RecordedDisk, Recording
from torture.facts.recording.model import survivors, uncovered, writes_until
from torture.facts.states.states import DistinctState, distinct_states, in_batches

NAMES = ("data0", "data1")
VOLATILE = dict.fromkeys(NAMES, Persistence.VOLATILE)
Owners = tuple[tuple[int, ...], ...]


def recording_of(log: Log) -> Recording:
    return Recording(
        folder=Path("life-1"),
        disks=tuple(
            RecordedDisk(name=name, size=SECTORS * SECTOR, sector=SECTOR, physical_sector=SECTOR)
            for name in NAMES
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
    assert (state.torn.submission, state.dropped) == (torn, (torn,))
    assert state.torn.sectors in ((0,), (0, 1))
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

"""The crash states of a cut and of a recording: what a cache keeps, where writes tear, their number."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, settings

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, logs
from suites.selftest.unit.walk.legal_states import NAMES, recording_of
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import DATA, Kind, RecordedDisk, Recording
from torture.facts.recording.intent_log import CHECKSUM_BYTES, EMBEDDED_CHECKSUM_MAGIC, LABEL_BYTES
from torture.facts.recording.model import (
    coin,
    count_crash_states,
    survivors,
    uncovered,
    writes_until,
)
from torture.features.walk.states.origins import lengths_of_labels
from torture.features.walk.states.states import (
    DistinctState,
    distinct_states,
    in_batches,
    states_with_torn_labels,
)

VOLATILE = dict.fromkeys(NAMES, Persistence.VOLATILE)


def undecided(log: Log, disk: int, cut: int) -> list[int]:
    view = DiskState(policy=Policy.FLUSHED)
    return [
        write.submission
        for write in uncovered(writes_until(log.events, disk=disk, cut=cut, view=view))
    ]


def states_at_end(
    log: Log, disks: Mapping[str, Persistence] = VOLATILE
) -> tuple[DistinctState, ...]:
    """The states that a cut at the log's last event can leave."""
    return distinct_states(recording_of(log), disks, first=log.last, last=log.last, seed=1)


@given(log=logs)
@settings(max_examples=examples(200), deadline=None)
def test_the_undecided_writes_of_a_state_survive_or_are_dropped(log: Log) -> None:
    """Of those at its last cut none is left out: a loss is sought among the dropped ones."""
    recording = recording_of(log)
    for state in distinct_states(recording, VOLATILE, first=0, last=log.last, seed=1):
        open_ = {one for disk in range(len(NAMES)) for one in undecided(log, disk, state.cut)}
        assert open_ <= {*state.survivors, *state.dropped}
        assert set(state.dropped) <= open_


@pytest.mark.parametrize(("is_flushed", "listed"), [(False, (1,)), (True, ())])
def test_a_protected_disk_keeps_its_completed_writes_and_lists_those_that_no_flush_covers(
    is_flushed: bool, listed: tuple[int, ...]
) -> None:
    """A loss says how many writes no flush covered."""
    log = Log()
    log.write(at=0)
    if is_flushed:
        log.flush()
    states = states_at_end(log, {"data0": Persistence.PLP})
    assert [state.survivors for state in states] == [listed]


def test_many_writes_are_left_one_by_one() -> None:
    log = Log()
    writes = [log.write(at=place) for place in range(6)]
    left = {state.survivors for state in states_at_end(log)}
    assert {(), tuple(writes)} < left
    assert all((write,) in left for write in writes)
    assert all(tuple(x for x in writes if x != write) in left for write in writes)


def test_of_hundreds_of_writes_some_are_alone() -> None:
    """A disk without flushes would have a state for each of them, after each event."""
    log = Log()
    writes = [log.write(at=place % SECTORS) for place in range(100)]
    left = [state.survivors for state in states_at_end(log)]
    alone = {survivors for survivors in left if len(survivors) == 1}
    assert 0 < len(alone) <= 64
    assert alone < {(write,) for write in writes}


def test_a_torn_write_keeps_its_first_physical_sectors() -> None:
    """It counts as dropped, for all of it may be what a loss needs; spared, it is whole."""
    log = Log()
    log.write(at=0)
    torn = log.write(at=1, sectors=3)
    (state,) = [state for state in states_at_end(log) if state.torn is not None]
    assert state.torn is not None
    assert (state.torn[0], state.dropped) == (torn, (torn,))
    assert state.torn[1] in ((0,), (0, 1))
    assert state.torn in state.crash_state(recording_of(log), NAMES).disks["data0"].survivors
    assert state.dropping_only(()).torn is None
    assert state.dropping_only((torn,)) == state


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


def test_only_open_writes_until_the_cut_of_the_asked_disks_count() -> None:
    """Where all is covered there is one state."""
    log = Log()
    log.write()
    cut = log.last
    log.write(disk=1)
    assert (count_of(log, cut=cut), count_of(log)) == (2, 4)
    assert count_of(log, disks=("slog0",)) == 2
    log.flush()
    log.flush(disk=1)
    assert count_of(log) == 1


@pytest.mark.parametrize(("cut", "disks"), [(7, DISKS), (0, ("data1",))])
def test_an_unknown_cut_or_disk_is_refused(cut: int, disks: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"no event 7|no disk 'data1'"):
        count_of(Log(), cut=cut, disks=disks)


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


# The states with a torn label: each label write, and each beginning of its configuration, once.

LABEL_SECTORS = LABEL_BYTES // SECTOR
CONFIGURATION = b"n" * 1300
"""Three sectors of 512 bytes, or one of 4096."""


def label(*, magic: int = EMBEDDED_CHECKSUM_MAGIC) -> bytes:
    body = CONFIGURATION.ljust(LABEL_BYTES - CHECKSUM_BYTES, b"\0")
    return body + pack("<Q", magic) + bytes(range(32))


def recorded(log: Log, folder: Path, payload: bytes, *, sector: int = SECTOR) -> Recording:
    """The log as a recording whose long writes all have this payload."""
    (folder / DATA).write_bytes(payload)
    events = [
        replace(event, payload_crc=zlib.crc32(payload), reference=0)
        if event.kind is Kind.WRITE_SUBMIT and event.length == LABEL_BYTES
        else event
        for event in log.events
    ]
    disks = tuple(
        RecordedDisk(name=name, size=1 << 20, sector=SECTOR, physical_sector=sector)
        for name in NAMES
    )
    return Recording(folder=folder, disks=disks, events=tuple(events))


def written() -> tuple[Log, int, int]:
    """Two labels of a disk, among a write of the other one; then a flush."""
    log = Log()
    first = log.write(sectors=LABEL_SECTORS)
    log.write(disk=1)
    second = log.write(at=2 * LABEL_SECTORS, sectors=LABEL_SECTORS)
    log.flush()
    return log, first, second


@pytest.mark.parametrize(("sector", "beginnings"), [(512, 3), (4096, 1)])
def test_each_beginning_of_a_configuration_survives_alone(
    sector: int, beginnings: int, tmp_path: Path
) -> None:
    log, first, second = written()
    recording = recorded(log, tmp_path, label(), sector=sector)
    states = states_with_torn_labels(recording, VOLATILE, first=0, last=log.last)
    assert sorted(state.torn for state in states if state.torn) == [
        (write, tuple(range(count)))
        for write in (first, second)
        for count in range(1, beginnings + 1)
    ]
    assert {state.survivors for state in states} == {()}
    assert {state.cut for state in states} == {log.last - 1}, "the last cut that leaves it"
    assert all(first in state.dropped and second in state.dropped for state in states)


def test_labels_before_the_first_cut_count_no_more(tmp_path: Path) -> None:
    log, *_ = written()
    recording = recorded(log, tmp_path, label())
    assert states_with_torn_labels(recording, VOLATILE, first=log.last, last=log.last) == ()


@pytest.mark.parametrize("payload", [label(magic=1), bytes(LABEL_BYTES)])
def test_another_write_of_that_length_is_no_label(payload: bytes, tmp_path: Path) -> None:
    log, *_ = written()
    recording = recorded(log, tmp_path, payload)
    assert lengths_of_labels(recording) == {}
    assert states_with_torn_labels(recording, VOLATILE, first=0, last=log.last) == ()


def test_the_torn_label_is_a_survivor_of_the_view(tmp_path: Path) -> None:
    log, first, _ = written()
    recording = recorded(log, tmp_path, label())
    state = states_with_torn_labels(recording, VOLATILE, first=0, last=log.last)[0]
    view = state.crash_state(recording, NAMES)
    assert view.disks["data0"].survivors == ((first, (0,)),)
    assert view.disks["data1"].survivors == ()

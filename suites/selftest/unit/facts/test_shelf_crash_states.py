"""All the crash states of a cut: each choice of whole uncovered writes once, on all disks together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, logs
from torture.facts.recording.crash_state import CrashState, DiskState, Policy
from torture.facts.recording.enumeration import count_crash_states, crash_states
from torture.facts.recording.events import RecordedDisk, Recording
from torture.facts.recording.model import survivors, uncovered, writes_until

DISKS = ("data0", "slog0")


def recorded(log: Log) -> Recording:
    return Recording(
        folder=Path("life-1"),
        disks=tuple(
            RecordedDisk(name=name, size=SECTOR * SECTORS, sector=SECTOR, physical_sector=SECTOR)
            for name in DISKS
        ),
        events=tuple(log.events),
    )


def states_of(
    log: Log, *, cut: int | None = None, disks: tuple[str, ...] = DISKS
) -> list[CrashState]:
    last = log.last if cut is None else cut
    return list(crash_states(recorded(log), cut=last, disks=disks, states_max=1024))


def kept(view: CrashState) -> list[tuple[str, int]]:
    return [
        (name, survivor.submission)
        for name, disk in view.disks.items()
        for survivor in disk.survivors
    ]


def test_every_choice_of_uncovered_writes_is_a_state() -> None:
    log = Log()
    log.write(fua=True)
    done, open_, slog = log.write(), log.submit(at=1), log.write(disk=1)
    log.flush(disk=0)
    late = log.write(at=2)
    log.complete(log.submit(at=3), error=5)
    undecided = [("data0", late), ("data0", open_), ("slog0", slog)]
    states = states_of(log)
    assert sorted(kept(view) for view in states) == sorted(
        [one for place, one in enumerate(undecided) if bits >> place & 1] for bits in range(8)
    )
    assert kept(states[0]) == []
    assert kept(states[-1]) == undecided
    assert ("data0", done) not in kept(states[-1])
    assert count_crash_states(recorded(log), cut=log.last, disks=DISKS) == 8


def test_a_state_is_a_view_of_the_recording_at_the_cut() -> None:
    log = Log()
    log.write()
    cut = log.last
    log.write(at=1)
    assert states_of(log, cut=cut, disks=("data0",))[0] == CrashState(
        recording=Path("life-1"),
        cut=cut,
        seed=0,
        disks={"data0": DiskState(policy=Policy.EXPLICIT)},
    )
    assert len(states_of(log, cut=cut)) == 2


def test_a_disk_that_is_not_asked_for_is_gone_and_undecided_about() -> None:
    log = Log()
    log.write(disk=0)
    log.write(disk=1)
    states = states_of(log, disks=("slog0",))
    assert [list(view.disks) for view in states] == [["slog0"], ["slog0"]]


def test_where_all_is_covered_there_is_one_state() -> None:
    log = Log()
    log.write()
    log.flush()
    assert [kept(view) for view in states_of(log)] == [[]]


def test_too_many_states_are_refused_before_the_first() -> None:
    log = Log()
    for _ in range(5):
        log.submit()
    recording = recorded(log)
    assert len(list(crash_states(recording, cut=log.last, disks=DISKS, states_max=32))) == 32
    with pytest.raises(ValueError, match=r"make 2\*\*5 crash states, and 31 are allowed"):
        crash_states(recording, cut=log.last, disks=DISKS, states_max=31)


def test_so_many_states_that_their_number_cannot_be_printed_are_refused_too() -> None:
    log = Log()
    for _ in range(20_000):
        log.submit()
    with pytest.raises(ValueError, match=r"make 2\*\*20000 crash states"):
        crash_states(recorded(log), cut=log.last, disks=DISKS, states_max=1024)


@pytest.mark.parametrize(("cut", "disks"), [(7, DISKS), (0, ("data1",))])
def test_an_unknown_cut_or_disk_is_refused(cut: int, disks: tuple[str, ...]) -> None:
    for enumerate_them in (
        lambda: crash_states(recorded(Log()), cut=cut, disks=disks, states_max=8),
        lambda: count_crash_states(recorded(Log()), cut=cut, disks=disks),
    ):
        with pytest.raises(ValueError, match=r"no event 7|no disk 'data1'"):
            enumerate_them()


@settings(deadline=None, max_examples=examples(50))
@given(log=logs)
def test_the_states_are_all_there_and_what_policies_leave_is_among_them(log: Log) -> None:
    recording, cut = recorded(log), log.last
    count = count_crash_states(recording, cut=cut, disks=DISKS)
    undecided = [
        write
        for disk in (0, 1)
        for write in uncovered(writes_until(log.events, disk=disk, cut=cut))
    ]
    assert count == 2 ** len(undecided)
    if count > 256:
        return
    states = list(crash_states(recording, cut=cut, disks=DISKS, states_max=count))
    assert len({tuple(kept(view)) for view in states}) == count
    for policy in (Policy.ALL, Policy.FLUSHED, Policy.SUBSET):
        left = [
            (name, number)
            for place, name in enumerate(DISKS)
            for number, places in survivors(
                log.events,
                disk=place,
                sector=SECTOR,
                view=DiskState(policy=policy),
                cut=cut,
                seed=9,
            ).items()
            if places
        ]
        assert left in [kept(view) for view in states]

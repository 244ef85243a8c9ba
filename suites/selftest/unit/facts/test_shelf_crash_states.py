"""The number of crash states of a cut: each choice of whole uncovered writes, on all disks together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, logs
from torture.facts.recording.accounting import count_crash_states
from torture.facts.recording.events import RecordedDisk, Recording
from torture.facts.recording.model import uncovered, writes_until

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


def count_of(log: Log, *, cut: int | None = None, disks: tuple[str, ...] = DISKS) -> int:
    return count_crash_states(recorded(log), cut=log.last if cut is None else cut, disks=disks)


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

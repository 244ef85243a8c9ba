"""The states with a torn label: each label write, and each beginning of its configuration, once."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from struct import pack

import pytest

from suites.selftest.unit.facts.shelf_logs import SECTOR, Log
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import DATA, Kind, RecordedDisk, Recording
from torture.facts.recording.intent_log import CHECKSUM_BYTES, EMBEDDED_CHECKSUM_MAGIC, LABEL_BYTES
from torture.features.walk.states.origins import lengths_of_labels
from torture.features.walk.states.states import states_with_torn_labels

DISKS = dict.fromkeys(("data0", "data1"), Persistence.VOLATILE)
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
        for name in DISKS
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
    states = states_with_torn_labels(recording, DISKS, first=0, last=log.last)
    assert sorted(state.torn for state in states if state.torn) == [
        (write, tuple(range(count)))
        for write in (first, second)
        for count in range(1, beginnings + 1)
    ]
    assert {state.survivors for state in states} == {()}
    assert all(first in state.dropped and second in state.dropped for state in states)


def test_a_state_has_the_last_cut_that_leaves_it(tmp_path: Path) -> None:
    log, *_ = written()
    recording = recorded(log, tmp_path, label())
    states = states_with_torn_labels(recording, DISKS, first=0, last=log.last)
    assert {state.cut for state in states} == {log.last - 1}


def test_labels_before_the_first_cut_count_no_more(tmp_path: Path) -> None:
    log, *_ = written()
    recording = recorded(log, tmp_path, label())
    assert states_with_torn_labels(recording, DISKS, first=log.last, last=log.last) == ()


@pytest.mark.parametrize("payload", [label(magic=1), bytes(LABEL_BYTES)])
def test_another_write_of_that_length_is_no_label(payload: bytes, tmp_path: Path) -> None:
    log, *_ = written()
    recording = recorded(log, tmp_path, payload)
    assert lengths_of_labels(recording) == {}
    assert states_with_torn_labels(recording, DISKS, first=0, last=log.last) == ()


def test_the_torn_label_is_a_survivor_of_the_view(tmp_path: Path) -> None:
    log, first, _ = written()
    recording = recorded(log, tmp_path, label())
    state = states_with_torn_labels(recording, DISKS, first=0, last=log.last)[0]
    view = state.crash_state(recording, tuple(DISKS))
    assert view.disks["data0"].survivors == ((first, (0,)),)
    assert view.disks["data1"].survivors == ()

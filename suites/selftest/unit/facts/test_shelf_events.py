"""Reading a recording: every field where the README says it is, and no log that ends the reader."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.event_records import encode_event
from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import Log, logs, payload
from torture.errors import HarnessError
from torture.facts.recording.events import (
    RECORD_BYTES,
    Event,
    ImageSource,
    Kind,
    RecordedDisk,
    Recording,
    ViewSource,
    load_part,
    load_recording,
    parse_event,
    read_events,
)
from torture.files import CHECKOUT

CONTRACT = (CHECKOUT / "torture" / "machines" / "shelf" / "native" / "README.md").read_text()

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
any_events = st.builds(
    Event,
    seq=u64,
    time_ns=u64,
    kind=st.sampled_from(Kind),
    fua=st.booleans(),
    disk=st.none() | st.integers(0, 0xFFFE),
    error=st.integers(-(2**31), 2**31 - 1),
    offset=u64,
    length=u64,
    reference=u64,
    payload_crc=u32,
    in_flight=u32,
)


def by_the_table(**fields: tuple[int, int, int]) -> bytes:
    """A record with each field's value at its byte, so many bytes long."""
    record = bytearray(RECORD_BYTES)
    for at, size, value in fields.values():
        record[at : at + size] = value.to_bytes(size, "little", signed=value < 0)
    record[60:] = zlib.crc32(record[:60]).to_bytes(4, "little")
    return bytes(record)


def encoded(log: Log) -> bytes:
    return b"".join(encode_event(event) for event in log.events)


def some_log() -> Log:
    log = Log()
    log.write(sectors=2, fua=True)
    log.submit(Kind.TRIM_SUBMIT, at=1)
    log.flush()
    return log


# --- records ---------------------------------------------------------------------------------------


def test_the_kinds_are_the_contracts() -> None:
    rows = [line for line in CONTRACT.splitlines() if re.match(r"\| \d+ `[a-z-]+`", line)]
    named = re.findall(r"(\d+) `([a-z-]+)`", "".join(row.split("|")[1] for row in rows))
    assert [(int(number), name) for number, name in named] == [
        (number, kind.value) for number, kind in enumerate(Kind)
    ]


def test_every_field_is_where_the_contract_says() -> None:
    record = by_the_table(
        seq=(0, 8, 0x0102030405060708),
        time_ns=(8, 8, 2**63 + 5),
        kind=(16, 1, 2),
        flags=(17, 1, 1),
        disk=(18, 2, 0x0A0B),
        error=(20, 4, -5),
        offset=(24, 8, 2**40 + 512),
        length=(32, 8, 2**33),
        reference=(40, 8, 2**50 + 1),
        payload_crc=(48, 4, 0xDEADBEEF),
        in_flight=(52, 4, 77),
    )
    event = Event(
        seq=0x0102030405060708,
        time_ns=2**63 + 5,
        kind=Kind.WRITE_COMPLETE,
        fua=True,
        disk=0x0A0B,
        error=-5,
        offset=2**40 + 512,
        length=2**33,
        reference=2**50 + 1,
        payload_crc=0xDEADBEEF,
        in_flight=77,
    )
    assert parse_event(record) == event
    assert encode_event(event) == record


def test_a_mark_is_of_no_disk_and_only_bit_0_is_fua() -> None:
    record = by_the_table(kind=(16, 1, 9), disk=(18, 2, 0xFFFF), flags=(17, 1, 0xFE))
    assert parse_event(record) == Event(seq=0, time_ns=0, kind=Kind.MARK)


@settings(deadline=None)
@given(event=any_events)
def test_an_event_comes_back(event: Event) -> None:
    assert parse_event(encode_event(event)) == event


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (encode_event(Event(seq=0, time_ns=0, kind=Kind.BEGIN))[:-1], "64 bytes, not 63"),
        (bytes(64), "checksum"),
        (by_the_table(kind=(16, 1, 12)), "kind 12"),
    ],
)
def test_no_event_is_guessed_at(record: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        parse_event(record)


# --- logs ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, data=st.data())
def test_a_log_cut_off_anywhere_is_read_up_to_its_last_whole_record(
    log: Log, data: st.DataObject
) -> None:
    whole = encoded(log)
    assert read_events(whole) == tuple(log.events)
    size = data.draw(st.integers(0, len(whole)))
    assert read_events(whole[:size]) == tuple(log.events[: size // RECORD_BYTES])


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, data=st.data(), change=st.integers(1, 255))
def test_a_garbled_byte_ends_the_log_at_its_record(
    log: Log, data: st.DataObject, change: int
) -> None:
    garbled = bytearray(encoded(log))
    place = data.draw(st.integers(0, len(garbled) - 1))
    garbled[place] ^= change
    assert read_events(bytes(garbled)) == tuple(log.events[: place // RECORD_BYTES])


def test_a_wrong_number_ends_the_log_though_its_checksum_is_right() -> None:
    log = some_log()
    log.events[3] = replace(log.events[3], seq=4)
    assert read_events(encoded(log)) == tuple(log.events[:3])


def test_allocated_bytes_that_were_never_written_end_the_log() -> None:
    log = some_log()
    assert read_events(encoded(log) + bytes(4096)) == tuple(log.events)


def test_a_sound_record_of_an_unknown_kind_is_not_the_end_of_the_log() -> None:
    with pytest.raises(ValueError, match="event 1 is of kind 200"):
        read_events(
            encode_event(Event(seq=0, time_ns=0, kind=Kind.BEGIN))
            + by_the_table(seq=(0, 8, 1), kind=(16, 1, 200))
        )


# --- recordings ------------------------------------------------------------------------------------

CONFIGURATION: dict[str, Any] = {
    "schema": 1,
    "recording": ".",
    "disks": [
        {"name": "data0", "size": 8192, "sector": 512, "profile": {"read_us": 0}},
        {
            "name": "data1",
            "size": 4096,
            "sector": 512,
            "physical_sector": 4096,
            "source": {"image": "../base.raw"},
        },
        {
            "name": "slog0",
            "size": 8192,
            "sector": 4096,
            "source": {"view": "../cut.view.json", "disk": "log0"},
        },
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording of `some_log` whose first write is at byte 100 of its data."""
    (tmp_path / "shelf.json").write_text(json.dumps(CONFIGURATION))
    log = some_log()
    log.events[1] = replace(log.events[1], reference=100)
    (tmp_path / "log").write_bytes(encoded(log))
    (tmp_path / "data").write_bytes(bytes(100) + payload(1, 2) + b"more")
    return tmp_path


def test_a_recording_is_its_disks_and_events(folder: Path) -> None:
    recording = load_recording(folder)
    assert recording.folder == folder
    assert recording.disks == (
        RecordedDisk(name="data0", size=8192, sector=512, physical_sector=512),
        RecordedDisk(
            name="data1",
            size=4096,
            sector=512,
            physical_sector=4096,
            source=ImageSource(image=folder / "../base.raw"),
        ),
        RecordedDisk(
            name="slog0",
            size=8192,
            sector=4096,
            physical_sector=4096,
            source=ViewSource(view=folder / "../cut.view.json", disk="log0"),
        ),
    )
    assert len(recording.events) == len(some_log().events)
    assert recording.place_of("slog0") == 2
    with pytest.raises(ValueError, match="no disk 'slog1'"):
        recording.place_of("slog1")


def test_a_part_of_a_recording_has_its_events_alone(folder: Path) -> None:
    whole, part = load_recording(folder), load_part(folder, first=1, last=2)
    assert (part.disks, part.events) == (whole.disks, whole.events[1:3])
    assert part.payload(part.events[0]) == payload(1, 2)
    last = len(whole.events) - 1
    assert load_part(folder, first=last, last=last).events == whole.events[last:]
    with pytest.raises(HarnessError, match=f"of the events 1 to {last + 1}"):
        load_part(folder, first=1, last=last + 1)


def test_the_contracts_own_configuration_is_read(folder: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", CONTRACT, re.DOTALL)
    (folder / "shelf.json").write_text(blocks[0])
    disks = load_recording(folder).disks
    assert [(disk.name, disk.size, disk.sector, disk.physical_sector) for disk in disks] == [
        ("data0", 4 << 30, 512, 512),
        ("slog0", 1 << 30, 512, 4096),
    ]
    assert disks[1].source == ViewSource(view=folder / "cut.view.json", disk="slog0")


@pytest.mark.parametrize("place", [2, 3, 0])
def test_only_writes_and_marks_have_a_payload(folder: Path, place: int) -> None:
    recording = load_recording(folder)
    assert recording.payload(recording.events[1]) == payload(1, 2)
    with pytest.raises(ValueError, match="has no payload"):
        recording.payload(recording.events[place])


@pytest.mark.parametrize("damage", ["gone", "short", "garbled"])
def test_a_damaged_payload_is_refused(folder: Path, damage: str) -> None:
    recording: Recording = load_recording(folder)
    data = folder / "data"
    match damage:
        case "gone":
            data.unlink()
        case "short":
            data.write_bytes(data.read_bytes()[:1000])
        case "garbled":
            data.write_bytes(data.read_bytes().replace(b"1.1", b"1.2"))
    with pytest.raises(HarnessError, match="payload of event 1"):
        recording.payload(recording.events[1])


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        ("shelf.json", None, "No such file"),
        ("log", None, "No such file"),
        ("shelf.json", b"{", "no readable recording"),
        ("shelf.json", b"[]", "lacks a field"),
        ("shelf.json", b'{"schema": 2, "disks": []}', "schema 2"),
        ("shelf.json", b'{"schema": 1, "disks": [{"name": "data0"}]}', "lacks a field"),
        (
            "shelf.json",
            b'{"schema": 1, "disks": [{"name": "data0", "size": 512, "sector": 520}]}',
            "data0 has sectors of 520 bytes",
        ),
        (
            "shelf.json",
            json.dumps(CONFIGURATION | {"disks": CONFIGURATION["disks"][:1] * 2}).encode(),
            "two disks of one name",
        ),
        ("log", b"", "no whole record"),
        ("log", encode_event(Event(seq=0, time_ns=0, kind=Kind.MARK)), "does not begin"),
        (
            "log",
            encode_event(Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=2)),
            "log of version 1",
        ),
        ("log", by_the_table(kind=(16, 1, 99)), "kind 99"),
    ],
)
def test_an_unreadable_recording_is_the_machinerys_fault(
    folder: Path, file: str, content: bytes | None, match: str
) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(HarnessError, match=match):
        load_recording(folder)

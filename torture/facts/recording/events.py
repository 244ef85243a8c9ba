"""Reads the native shelf's recording: its events, its disks, its payloads (pure).

native/README.md has the format and the names of the events.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.facts.evidence.documents import strict_json

CONFIGURATION = "shelf.json"
LOG = "log"
DATA = "data"

SCHEMA = 1
"""The schema of `shelf.json`."""
LOG_VERSION = 1
"""The `reference` of a `begin` event."""
RECORD_BYTES = 64
SECTORS_BYTES = (512, 4096)

_NO_DISK = 0xFFFF
_FUA = 1
_RECORD = struct.Struct("<QQBBHiQQQII4xI")
_CHECKED_BYTES = 60
assert _RECORD.size == RECORD_BYTES


class Kind(StrEnum):
    """The kind of an event. The order is that of the numbers in the recording, from 0."""

    BEGIN = "begin"
    WRITE_SUBMIT = "write-submit"
    WRITE_COMPLETE = "write-complete"
    ZERO_SUBMIT = "zero-submit"
    ZERO_COMPLETE = "zero-complete"
    TRIM_SUBMIT = "trim-submit"
    TRIM_COMPLETE = "trim-complete"
    FLUSH_SUBMIT = "flush-submit"
    FLUSH_COMPLETE = "flush-complete"
    MARK = "mark"
    FREEZE = "freeze"
    FAILED = "failed"


_KINDS = tuple(Kind)

WRITE_SUBMITS = frozenset({Kind.WRITE_SUBMIT, Kind.ZERO_SUBMIT, Kind.TRIM_SUBMIT})
"""Zeroes and trims count as writes."""
WRITE_COMPLETES = frozenset({Kind.WRITE_COMPLETE, Kind.ZERO_COMPLETE, Kind.TRIM_COMPLETE})
WITH_PAYLOAD = frozenset({Kind.WRITE_SUBMIT, Kind.MARK})


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of a recording. `offset` and `length` are bytes on the disk.

    `reference` is the payload's offset in `data`; of a completion it is the `seq` of its submission.
    `in_flight` counts the writes of all disks that are submitted and not completed after this event.
    """

    seq: int
    time_ns: int
    kind: Kind
    fua: bool = False
    disk: int | None = None
    """Its index among the recording's disks."""
    error: int = 0
    """errno of a completion that failed."""
    offset: int = 0
    length: int = 0
    reference: int = 0
    payload_crc: int = 0
    in_flight: int = 0


def parse_event(record: bytes) -> Event:
    """The event of one record; raises `ValueError` for a short or garbled record or an unknown kind."""
    if len(record) != RECORD_BYTES:
        raise ValueError(f"a record has {RECORD_BYTES} bytes, not {len(record)}")
    *fields, crc = _RECORD.unpack(record)
    if zlib.crc32(record[:_CHECKED_BYTES]) != crc:
        raise ValueError("the record's checksum is wrong")
    return _event(fields)


def read_events(data: bytes, *, first: int = 0) -> tuple[Event, ...]:
    """The events of a file `log`, until its first record that is short, garbled or wrongly numbered.

    `first` is the number of the first event in `data`. So `read_events(...)[n].seq == n` without it. A
    file that a kill truncated at any byte is read up to its last
    whole record. Raises `ValueError` for a sound record of an unknown kind: a newer shelf wrote it.
    Stopping there would hide the events behind it.
    """
    events: list[Event] = []
    view = memoryview(data)
    whole = view[: len(data) // RECORD_BYTES * RECORD_BYTES]
    crc32 = zlib.crc32
    start = 0
    for number, (*fields, crc) in enumerate(_RECORD.iter_unpack(whole), first):
        if fields[0] != number or crc32(view[start : start + _CHECKED_BYTES]) != crc:
            break
        events.append(_event(fields))
        start += RECORD_BYTES
    return tuple(events)


def _event(fields: Sequence[int]) -> Event:
    (
        seq, time_ns, number, flags, disk, error, offset, length, reference, payload_crc, in_flight,
    ) = fields  # fmt: skip
    if number >= len(_KINDS):
        raise ValueError(f"event {seq} is of kind {number}, which this reader does not know")
    return Event(
        seq=seq,
        time_ns=time_ns,
        kind=_KINDS[number],
        fua=bool(flags & _FUA),
        disk=None if disk == _NO_DISK else disk,
        error=error,
        offset=offset,
        length=length,
        reference=reference,
        payload_crc=payload_crc,
        in_flight=in_flight,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSource:
    """A disk that began with the content of a file."""

    image: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewSource:
    """A disk that began with the content of a crash state's disk."""

    view: Path
    disk: str


Source = ImageSource | ViewSource


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedDisk:
    """A disk as it was served; sizes are bytes. Without `source` it began with zeroes."""

    name: str
    size: int
    sector: int
    physical_sector: int
    """The unit of torn writes."""
    source: Source | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """All requests to the disks of one shelf; an event's `disk` is an index of `disks`."""

    folder: Path
    disks: tuple[RecordedDisk, ...]
    events: tuple[Event, ...]

    def place_of(self, name: str) -> int:
        """A disk's index in `disks`; raises `ValueError` for an unknown name."""
        for place, disk in enumerate(self.disks):
            if disk.name == name:
                return place
        raise ValueError(f"{self.folder} has no disk {name!r}")

    def payload(self, event: Event) -> bytes:
        """The bytes of a `write-submit`, or the text of a `mark`.

        Raises `HarnessError` when `data` does not hold the payload undamaged, and `ValueError` for an
        event without payload.
        """
        if event.kind not in WITH_PAYLOAD:
            raise ValueError(f"event {event.seq}, a {event.kind}, has no payload")
        path = self.folder / DATA
        try:
            with path.open("rb") as data:
                data.seek(event.reference)
                payload = data.read(event.length)
        except OSError as error:
            raise HarnessError(f"cannot read the payload of event {event.seq}: {error}") from error
        if len(payload) != event.length or zlib.crc32(payload) != event.payload_crc:
            raise HarnessError(
                f"{path} does not hold the payload of event {event.seq}: {event.length} bytes at "
                f"{event.reference}",
                hint="was the recording copied whole? Copy it again, with `log` last",
            )
        return payload


def load_recording(folder: Path) -> Recording:
    """The recording in a folder; raises `HarnessError` when it cannot be read.

    Its sources' paths are relative to the folder.
    """
    try:
        disks = _disks(strict_json((folder / CONFIGURATION).read_bytes()), folder)
        events = read_events((folder / LOG).read_bytes())
        if not events:
            raise ValueError(f"{LOG} has no whole record")
        if events[0].kind is not Kind.BEGIN or events[0].reference != LOG_VERSION:
            raise ValueError(f"{LOG} does not begin as a log of version {LOG_VERSION}")
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"no readable recording in {folder}: {error}",
            hint=f"ls -l {folder}; torture/machines/shelf/native/README.md has the format",
        ) from error
    return Recording(folder=folder, disks=disks, events=events)


def load_part(folder: Path, *, first: int, last: int) -> Recording:
    """A recording with events `first` to `last` alone, so that a long one takes little memory.

    The recording may still grow. Functions that find an event by its number need a whole one. Raises
    `HarnessError` when it cannot be read, or lacks one of these events.
    """
    try:
        disks = _disks(strict_json((folder / CONFIGURATION).read_bytes()), folder)
        with (folder / LOG).open("rb") as log:
            log.seek(first * RECORD_BYTES)
            events = read_events(log.read((last - first + 1) * RECORD_BYTES), first=first)
        if len(events) <= last - first:
            raise ValueError(f"{LOG} has {len(events)} of the events {first} to {last}")
    except (OSError, ValueError) as error:
        raise HarnessError(f"no readable recording in {folder}: {error}") from error
    return Recording(folder=folder, disks=disks, events=events)


def verify_payloads(recording: Recording) -> None:
    """Read every payload; raises `HarnessError` for the first that `data` does not hold undamaged."""
    for event in recording.events:
        if event.kind in WITH_PAYLOAD:
            recording.payload(event)


def marks_until(recording: Recording, *, cut: int) -> list[bytes]:
    """The text of the marks up to and including event `cut`; raises what `Recording.payload` raises."""
    events = recording.events[: cut + 1]
    return [recording.payload(event) for event in events if event.kind is Kind.MARK]


def _disks(configuration: Any, folder: Path) -> tuple[RecordedDisk, ...]:
    try:
        if configuration["schema"] != SCHEMA:
            raise ValueError(
                f"{CONFIGURATION} is of schema {configuration['schema']}, not {SCHEMA}"
            )
        disks = tuple(
            RecordedDisk(
                name=disk["name"],
                size=disk["size"],
                sector=disk["sector"],
                physical_sector=disk.get("physical_sector", disk["sector"]),
                source=_source(disk.get("source"), folder),
            )
            for disk in configuration["disks"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{CONFIGURATION} lacks a field: {error!r}") from error
    for disk in disks:
        for bytes_ in (disk.sector, disk.physical_sector):
            if bytes_ not in SECTORS_BYTES:
                raise ValueError(f"{CONFIGURATION}: {disk.name} has sectors of {bytes_} bytes")
    if len({disk.name for disk in disks}) != len(disks):
        raise ValueError(f"{CONFIGURATION} has two disks of one name")
    return disks


def _source(source: Any, folder: Path) -> Source | None:
    if source is None:
        return None
    if "image" in source:
        return ImageSource(image=folder / source["image"])
    return ViewSource(view=folder / source["view"], disk=source["disk"])

"""Recordings that no shelf made: any log, with the checksums of a true one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suites.selftest.unit.event_records import encode_event
from torture.facts.recording.events import (
    CONFIGURATION,
    DATA,
    LOG,
    WITH_PAYLOAD,
    WRITE_COMPLETES,
    WRITE_SUBMITS,
    Event,
    Kind,
)

_PIECE_BYTES = 512


def forge(
    folder: Path,
    disks: Sequence[dict[str, Any]],
    events: Sequence[Event],
    payloads: dict[int, bytes],
) -> None:
    """Write a recording into `folder`, which is made; `payloads` by the numbers of their events."""
    folder.mkdir(exist_ok=True)
    (folder / CONFIGURATION).write_text(json.dumps({"schema": 1, "disks": list(disks)}))
    data = bytearray()
    in_flight: set[int] = set()
    records = []
    for event in events:
        if event.kind in WRITE_SUBMITS:
            in_flight.add(event.seq)
        elif event.kind in WRITE_COMPLETES:
            in_flight.discard(event.reference)
        forged = replace(event, in_flight=len(in_flight))
        if event.kind in WITH_PAYLOAD:
            payload = payloads[event.seq]
            forged = replace(forged, reference=len(data), payload_crc=zlib.crc32(payload))
            data += payload + bytes(-len(payload) % _PIECE_BYTES)
        records.append(encode_event(forged))
    (folder / LOG).write_bytes(b"".join(records))
    (folder / DATA).write_bytes(data)


def scaled(events: Sequence[Event], factor: int) -> tuple[Event, ...]:
    """The same log of a disk whose sectors are so much larger."""
    return tuple(
        replace(event, offset=event.offset * factor, length=event.length * factor)
        for event in events
    )


def writes_one_by_one(
    count: int, *, size: int, length: int
) -> tuple[list[Event], dict[int, bytes]]:
    """A log of so many completed writes all over a disk, and their payloads."""
    events = [Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=1)]
    payloads = {}
    for number in range(count):
        submission = len(events)
        payloads[submission] = (number + 1).to_bytes(8, "little") * (length // 8)
        submitted = Event(
            seq=submission,
            time_ns=submission,
            kind=Kind.WRITE_SUBMIT,
            disk=0,
            offset=number * 7919 % (size // length) * length,
            length=length,
        )
        completed = replace(
            submitted, seq=submission + 1, kind=Kind.WRITE_COMPLETE, reference=submission
        )
        events += [submitted, completed]
    return events, payloads

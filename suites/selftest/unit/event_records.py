"""Events of a recording as the shelf's plugin writes them: the bytes of its file `log`."""

from __future__ import annotations

import struct
import zlib

from torture.facts.recording.events import RECORD_BYTES, Event, Kind

_NO_DISK = 0xFFFF
_FUA = 1
_RECORD = struct.Struct("<QQBBHiQQQII4xI")
_CHECKED_BYTES = 60
_NUMBER_OF = {kind: number for number, kind in enumerate(Kind)}


def encode_event(event: Event) -> bytes:
    """The bytes of an event in the file `log`."""
    checked = _RECORD.pack(
        event.seq,
        event.time_ns,
        _NUMBER_OF[event.kind],
        _FUA if event.fua else 0,
        _NO_DISK if event.disk is None else event.disk,
        event.error,
        event.offset,
        event.length,
        event.reference,
        event.payload_crc,
        event.in_flight,
        0,
    )[:_CHECKED_BYTES]
    return checked + zlib.crc32(checked).to_bytes(RECORD_BYTES - _CHECKED_BYTES, "little")

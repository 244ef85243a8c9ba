"""The wishes of the random client of a sequence, drawn by a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from suites.selftest.shelf.requests import Request, Verb, payload
from suites.selftest.shelf.session import SessionDisk
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import (
    EMBEDDED_CHECKSUM_MAGIC,
    UBERBLOCK_MAGIC,
    ZIL_MAGIC_AT,
    Role,
)

_MARK_BYTES = 16
_VERBS = {
    Verb.WRITE: 10, Verb.FLUSH: 4, Verb.READ: 3, Verb.ZERO: 3, Verb.TRIM: 3, Verb.MARK: 2
}  # fmt: skip
_SECTORS = (1, 1, 1, 2, 2, 3, 8, 9, 16, 128)
_TRIGGERS = (
    Kind.WRITE_SUBMIT, Kind.WRITE_SUBMIT, Kind.WRITE_COMPLETE, Kind.WRITE_COMPLETE,
    Kind.FLUSH_SUBMIT, Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE, Kind.FLUSH_COMPLETE,
    Kind.ZERO_SUBMIT, Kind.ZERO_COMPLETE, Kind.TRIM_SUBMIT, Kind.TRIM_COMPLETE, Kind.MARK,
)  # fmt: skip
_WITH_ROLES = (
    Kind.WRITE_SUBMIT, Kind.WRITE_COMPLETE, Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE
)  # fmt: skip
_OF_A_ROLE = 0.4
_SIGNS = (
    (b"", 0),
    (struct.pack("<Q", UBERBLOCK_MAGIC), 0),
    (struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC), ZIL_MAGIC_AT),
)
"""The content that gives a write its role, and its place."""
_OF_LOG: tuple[dict[str, object], ...] = (
    {}, {"zil_uncovered": 1}, {"zil_uncovered": 2}, {"zil_reused": True}
)  # fmt: skip
_ROLES = (Role.ZIL, Role.UBERBLOCK, Role.METADATA, Role.METADATA, Role.DATA)


class Generator:
    """Wants things of disks, each one different: its payloads are found nowhere else."""

    def __init__(self) -> None:
        self._number = 0

    def requests(
        self, rng: random.Random, disks: Sequence[SessionDisk], count: int
    ) -> list[Request]:
        """Some requests; half of the time all of them are for the same few sectors of one disk."""
        place = rng.randrange(len(disks))
        at = rng.randrange(24)
        if rng.random() < 0.5:
            return [self._request(rng, disks, place, at + rng.randrange(3)) for _ in range(count)]
        return [
            self._request(
                rng, disks, rng.randrange(len(disks)), rng.choice((rng.randrange(128), at))
            )
            for _ in range(count)
        ]

    def write(self, rng: random.Random, disks: Sequence[SessionDisk], place: int) -> Request:
        """A write to the beginning of a disk, where it meets others."""
        return self._on_disk(rng, Verb.WRITE, disks, place, rng.randrange(6))

    def mark(self) -> Request:
        """A mark like no other."""
        self._number += 1
        mark = payload(self._number, 512)[:_MARK_BYTES]
        return Request(verb=Verb.MARK, length=_MARK_BYTES, payload=mark)

    def _request(
        self, rng: random.Random, disks: Sequence[SessionDisk], place: int, at: int
    ) -> Request:
        verb = rng.choices(list(_VERBS), list(_VERBS.values()))[0]
        if verb is Verb.FLUSH:
            return Request(verb=verb, disk=place)
        if verb is Verb.MARK:
            return self.mark()
        return self._on_disk(rng, verb, disks, place, at)

    def _on_disk(
        self, rng: random.Random, verb: Verb, disks: Sequence[SessionDisk], place: int, at: int
    ) -> Request:
        self._number += 1
        disk = disks[place]
        offset = at * disk.sector % disk.size
        length = min(rng.choice(_SECTORS) * disk.sector, disk.size - offset)
        return Request(
            verb=verb,
            disk=place,
            offset=offset,
            length=length,
            fua=verb is not Verb.READ and rng.random() < 0.25,
            payload=_signed(self._number, length) if verb is Verb.WRITE else b"",
        )


def _signed(number: int, length: int) -> bytes:
    """A payload of its own that may look like a block of ZFS's."""
    unique = payload(number, length)
    sign, at = _SIGNS[number % len(_SIGNS)]
    return unique[:at] + sign + unique[at + len(sign) :]


def draw_freeze(rng: random.Random, disks: Sequence[SessionDisk], seq: int) -> object:
    """A command for `control`, that comes true soon; `seq` is about the last event."""
    match rng.randrange(7):
        case 0:
            return {"after_ms": rng.randrange(6) / 2}
        case 1 | 2 | 3:
            return {"at_seq": max(0, seq + rng.randrange(-2, 25))}
        case _:
            if rng.random() < _OF_A_ROLE:
                # soon, or a sequence is over before it could come true
                role = rng.choice(_ROLES)
                of_log = rng.choice(_OF_LOG) if role is Role.ZIL else {}
                event = rng.choice(_WITH_ROLES).value
                return {"event": event, "count": 1, "role": role.value} | of_log
            on_disk = {"disk": rng.choice(disks).name} if rng.random() < 0.7 else {}
            return {"event": rng.choice(_TRIGGERS).value, "count": rng.randint(1, 4)} | on_disk

"""Recordings written event by event, of a NAS that speaks ZFS as far as the audit listens."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from torture.audit.audit import Audit, Finding, audit
from torture.audit.phases import Phase
from torture.axes.sync import Sync
from torture.recording.events import DATA, LOG_VERSION, Event, Kind, RecordedDisk, Recording
from torture.recording.roles import (
    EMBEDDED_CHECKSUM_MAGIC,
    LABEL_BYTES,
    UBERBLOCK_MAGIC,
    ZIL_MAGIC_AT,
)

BLOCK = bytes(16384)
METADATA = bytes(4096)


def uberblock(txg: int) -> bytes:
    return struct.pack("<QQQ", UBERBLOCK_MAGIC, 5000, txg).ljust(1024, b"\0")


def zil_block() -> bytes:
    return bytes(ZIL_MAGIC_AT) + struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC).ljust(4096, b"\0")


def label() -> bytes:
    checksum = struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC).ljust(40, b"\0")
    return bytes(LABEL_BYTES - len(checksum)) + checksum


@dataclass
class Story:
    """A recording of two disks under construction."""

    folder: Path
    events: list[Event] = field(
        default_factory=lambda: [Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=LOG_VERSION)]
    )
    now_ns: int = 0
    _data: bytearray = field(default_factory=bytearray)

    def submit(
        self,
        payload: bytes,
        *,
        disk: int = 0,
        fua: bool = False,
        offset: int | None = None,
        later_ms: int = 0,
    ) -> int:
        self.now_ns += later_ms * 1_000_000
        return self._with_payload(Kind.WRITE_SUBMIT, payload, disk=disk, fua=fua, offset=offset)

    def complete(self, submission: int, *, error: int = 0) -> int:
        submitted = self.events[submission]
        flush = submitted.kind is Kind.FLUSH_SUBMIT
        return self._add(
            Kind.FLUSH_COMPLETE if flush else Kind.WRITE_COMPLETE,
            disk=submitted.disk,
            reference=submission,
            error=error,
        )

    def write(
        self,
        payload: bytes,
        *,
        disk: int = 0,
        fua: bool = False,
        offset: int | None = None,
        later_ms: int = 0,
    ) -> int:
        submission = self.submit(payload, disk=disk, fua=fua, offset=offset, later_ms=later_ms)
        self.complete(submission)
        return submission

    def begin_flush(self, *, disk: int = 0) -> int:
        return self._add(Kind.FLUSH_SUBMIT, disk=disk)

    def flush(self, *, disk: int = 0, error: int = 0) -> None:
        self.complete(self.begin_flush(disk=disk), error=error)

    def begins(self, seq: int, kind: str = "append") -> int:
        return self._mark(event="begin", seq=seq, writer=0, op=kind, file=0, blocks=[0], size=1)

    def is_done(self, seq: int, *, later_ms: int = 0) -> int:
        self.now_ns += later_ms * 1_000_000
        return self._mark(event="done", seq=seq)

    def _mark(self, **line: object) -> int:
        text = json.dumps(line | {"t_ms": 1.0}) + "\n"
        return self._with_payload(Kind.MARK, text.encode(), disk=None)

    def _with_payload(
        self,
        kind: Kind,
        payload: bytes,
        *,
        disk: int | None,
        fua: bool = False,
        offset: int | None = None,
    ) -> int:
        place = len(self._data)
        self._data += payload
        return self._add(
            kind,
            disk=disk,
            fua=fua,
            offset=place if offset is None else offset,
            length=len(payload),
            reference=place,
            crc=zlib.crc32(payload),
        )

    def _add(
        self,
        kind: Kind,
        *,
        disk: int | None,
        fua: bool = False,
        offset: int = 0,
        length: int = 0,
        reference: int = 0,
        error: int = 0,
        crc: int = 0,
    ) -> int:
        seq = len(self.events)
        self.events.append(
            Event(
                seq=seq, time_ns=self.now_ns + seq, kind=kind, disk=disk, fua=fua, offset=offset,
                length=length, reference=reference, error=error, payload_crc=crc,
            )
        )  # fmt: skip
        return seq

    def findings(self, *, cut: int | None = None, sync: Sync = Sync.STANDARD) -> list[Finding]:
        return list(self.audited(cut=cut, sync=sync)[0])

    def phase(self) -> Phase:
        return self._audit(cut=None, sync=Sync.DISABLED).phase

    def uncommitted_ms(self) -> int | None:
        return self._audit(cut=None, sync=Sync.DISABLED).uncommitted_ms

    def audited(
        self, *, cut: int | None = None, sync: Sync = Sync.STANDARD
    ) -> tuple[tuple[Finding, ...], int, int]:
        found = self._audit(cut=cut, sync=sync)
        return found.findings, found.acknowledgements, found.txgs

    def _audit(self, *, cut: int | None, sync: Sync) -> Audit:
        (self.folder / DATA).write_bytes(self._data)
        disks = tuple(RecordedDisk(name=name, size=1 << 20, sector=512) for name in ("a", "b"))
        recording = Recording(folder=self.folder, disks=disks, events=tuple(self.events))
        last = len(self.events) - 1 if cut is None else cut
        return audit(recording, cut=last, sync=sync)

"""Recordings written event by event, of a NAS that speaks ZFS as far as the audit listens."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import Phase
from torture.facts.evidence.requests import BlockKind, BlockRequest, FileKind, FileRequest
from torture.facts.recording.events import DATA, LOG_VERSION, Event, Kind, RecordedDisk, Recording
from torture.facts.recording.intent_log import (
    EMBEDDED_CHECKSUM_MAGIC,
    LABEL_BYTES,
    UBERBLOCK_MAGIC,
    ZIL_MAGIC_AT,
)
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.commits import LATE_MS
from torture.oracles.audit.durable import Completions
from torture.oracles.audit.invariants import Audit, Finding, Invariant

BLOCK = bytes(16384)
METADATA = bytes(4096)
_OF_NAMES_ALONE = ("unlink",)
_COMPLETION_OF = {
    Kind.WRITE_SUBMIT: Kind.WRITE_COMPLETE,
    Kind.TRIM_SUBMIT: Kind.TRIM_COMPLETE,
    Kind.FLUSH_SUBMIT: Kind.FLUSH_COMPLETE,
}


def uberblock(txg: int, *, root: bytes = b"") -> bytes:
    """`root`: the pointer to its root block."""
    head = struct.pack("<QQQ", UBERBLOCK_MAGIC, 5000, txg).ljust(40, b"\0")
    return (head + root).ljust(1024, b"\0")


def zil_block() -> bytes:
    return (bytes(ZIL_MAGIC_AT) + struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC)).ljust(4096, b"\0")


def log_block(*writes: tuple[int, int], is_split: bool = False) -> bytes:
    """A block of the intent log with writes to a volume, by offset and length; their data are zeroes."""
    return log_of(*(logged(offset, bytes(length)) for offset, length in writes), is_split=is_split)


def logged(offset: int, content: bytes) -> bytes:
    """A record of a write."""
    header = struct.pack("<QQQQ", 9, 192 + len(content), 22, 1)
    return (header + struct.pack("<QQQ", 1, offset, len(content))).ljust(192, b"\0") + content


def log_with(*writes: tuple[int, bytes]) -> bytes:
    """A block of the intent log with these writes."""
    return log_of(*(logged(offset, data) for offset, data in writes))


def logged_name(*names: str) -> bytes:
    """A record of a change of names, such as TX_RENAME."""
    tail = bytes(16) + b"".join(name.encode() + b"\0" for name in names)
    tail += bytes(-len(tail) % 8)
    return struct.pack("<QQQQ", 8, 32 + len(tail), 22, 1) + tail


def log_of(*parts: bytes, is_split: bool = False) -> bytes:
    """A block of the intent log with these records."""
    records = b"".join(parts)
    used = 184 + len(records) + (4096 if is_split else 0)
    chain = bytes(136) + struct.pack("<QQ", used, EMBEDDED_CHECKSUM_MAGIC)
    return (chain.ljust(184, b"\0") + records).ljust(4096, b"\0")


def label(**numbers: int) -> bytes:
    """`numbers`: the pairs of its list, as XDR."""
    pairs = b"".join(
        struct.pack(">I", len(name))
        + name.encode()
        + bytes(-len(name) % 4)
        + struct.pack(">IIQ", 8, 1, value)
        for name, value in numbers.items()
    )
    checksum = struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC).ljust(40, b"\0")
    return pairs.ljust(LABEL_BYTES - len(checksum), b"\0") + checksum


@dataclass
class Story:
    """A recording of two disks under construction."""

    folder: Path
    events: list[Event] = field(
        default_factory=lambda: [Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=LOG_VERSION)]
    )
    now_ns: int = 0
    requests: list[BlockRequest | FileRequest] = field(default_factory=list)
    """The requests that the client's disk, or its server, completed."""
    accused: list[int] = field(default_factory=list)
    """At which events `uncovered` found something."""
    whole_on: tuple[str, ...] = ("a",)
    """The disks on each of which a block lies whole; none where it is split."""
    physical_sector: int = 512
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
        return self._add(
            _COMPLETION_OF[submitted.kind],
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

    def trim(self, *, offset: int, length: int, disk: int = 0) -> int:
        return self._add(Kind.TRIM_SUBMIT, disk=disk, offset=offset, length=length)

    def zero(self, *, offset: int, length: int, disk: int = 0) -> int:
        return self._add(Kind.ZERO_SUBMIT, disk=disk, offset=offset, length=length)

    def begin_flush(self, *, disk: int = 0) -> int:
        return self._add(Kind.FLUSH_SUBMIT, disk=disk)

    def flush(self, *, disk: int = 0, error: int = 0) -> None:
        self.complete(self.begin_flush(disk=disk), error=error)

    def begins(self, seq: int, kind: str = "append", **what: object) -> int:
        blocks = [] if kind in _OF_NAMES_ALONE else [0]
        line = {"seq": seq, "writer": 0, "op": kind, "file": 0, "blocks": blocks, "size": 1}
        return self.says(event="begin", what=what, **line)

    def is_done(self, seq: int, *, later_ms: int = 0) -> int:
        self.now_ns += later_ms * 1_000_000
        return self.says(event="done", seq=seq)

    def acknowledges(self, seq: int, *, is_covered: bool = True, later_ms: int = 0) -> int:
        """An operation with a block of the intent log of its own; the mark that ends it."""
        self.begins(seq)
        self.write(zil_block())
        if is_covered:
            self.flush()
        return self.is_done(seq, later_ms=later_ms)

    def says(self, **line: object) -> int:
        """A line of the load."""
        return self.hears(json.dumps(line | {"t_ms": 1.0}).encode() + b"\n")

    def hears(self, line: bytes) -> int:
        """A mark, whatever it says."""
        return self._with_payload(Kind.MARK, line, disk=None)

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

    def findings_of_data(self) -> list[Finding]:
        """Where acknowledgements are of no names."""
        return list(self._audit(cut=None, sync=Sync.STANDARD, names_are_volatile=True).findings)

    def findings_of_groups(self, *, late_ms: int) -> list[Finding]:
        """Where transaction groups may come so late."""
        return list(self._audit(cut=None, sync=Sync.STANDARD, late_ms=late_ms).findings)

    def phase(self, *, length_shows_metadata: bool = True) -> Phase | None:
        return self._audit(
            cut=None, sync=Sync.DISABLED, length_shows_metadata=length_shows_metadata
        ).phase

    def uncommitted_ms(self) -> int | None:
        return self._audit(cut=None, sync=Sync.DISABLED).uncommitted_ms

    def audited(
        self, *, cut: int | None = None, sync: Sync = Sync.STANDARD
    ) -> tuple[tuple[Finding, ...], int, int]:
        found = self._audit(cut=cut, sync=sync)
        return found.findings, found.acknowledgements, found.txgs

    def client_writes(self, offset: int, length: int = 4096) -> BlockRequest:
        """A write of the client that begins now; `completes` ends it."""
        self.now_ns += 1
        now_ns = self.now_ns + len(self.events) - 1
        return BlockRequest(
            kind=BlockKind.WRITE,
            submitted_ns=now_ns,
            completed_ns=now_ns,
            offset_bytes=offset,
            length_bytes=length,
        )

    def client_flushes(self) -> BlockRequest:
        """A flush of the client that begins now."""
        return replace(self.client_writes(0, 0), kind=BlockKind.FLUSH)

    def server_takes(self, kind: FileKind, **fields: Any) -> FileRequest:
        """A request for a file that begins now; `completes` ends it."""
        now_ns = self.client_writes(0).submitted_ns
        return FileRequest(kind=kind, submitted_ns=now_ns, completed_ns=now_ns, **fields)

    def completes(self, request: BlockRequest | FileRequest) -> None:
        """The client's disk or server completes a request now."""
        self.now_ns += 1
        done = replace(request, completed_ns=self.now_ns + len(self.events) - 1)
        self.requests.append(done)

    def uncovered(self, *, sync: Sync, error_ns: int = 0) -> tuple[int | None, list[int | None]]:
        """How many writes were promised to be durable, and where the client wrote those that are not."""
        self.begin_flush()  # the cut comes after all that was completed
        completions = Completions(
            requests=tuple(self.requests), error_ns=error_ns, names_are_stable=True
        )
        found = self._audit(cut=None, sync=sync, completions=completions)
        wanted = Invariant.COMPLETED_IS_DURABLE
        self.accused = [x.event for x in found.findings if x.invariant is wanted]
        places = [x.offset_bytes for x in found.findings if x.invariant is wanted]
        return found.completions, places

    def _audit(
        self,
        *,
        cut: int | None,
        sync: Sync,
        completions: Completions | None = None,
        names_are_volatile: bool = False,
        length_shows_metadata: bool = True,
        late_ms: int = LATE_MS,
    ) -> Audit:
        last = len(self.events) - 1 if cut is None else cut
        return audit(
            self.recorded(),
            cut=last,
            terms=AuditTerms(
                sync=sync,
                whole_on=self.whole_on,
                names_are_volatile=names_are_volatile,
                length_shows_metadata=length_shows_metadata,
                late_ms=late_ms,
            ),
            completions=completions,
        )

    def recorded(self) -> Recording:
        """The recording so far."""
        (self.folder / DATA).write_bytes(self._data)
        disks = tuple(
            RecordedDisk(name=name, size=1 << 20, sector=512, physical_sector=self.physical_sector)
            for name in ("a", "b")
        )
        return Recording(folder=self.folder, disks=disks, events=tuple(self.events))

    def audit_of_all(self, *, sync: Sync) -> Audit:
        """The whole audit, with what the client's disk completed, of a cut that comes now."""
        self.begin_flush()
        completions = Completions(requests=tuple(self.requests), error_ns=0)
        return self._audit(cut=None, sync=sync, completions=completions)

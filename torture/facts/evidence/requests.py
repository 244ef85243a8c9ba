"""The answered requests of a client for its disk, or for files of the NAS: promises to build on.

QEMU logs each request when it takes the request from the guest, and when it gives it back. The
source is its `docs/devel/tracing.rst`; the events are in `hw/block/trace-events` and
`hw/virtio/trace-events`. The log puts nothing between client and NAS. Its cost is a line of text a
request. `torture.facts.wire` reads the requests for files, and for a disk that QEMU does not serve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from struct import Struct

from torture.facts.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC, SECTOR_BYTES

BLOCK_REQUESTS = "block-requests.jsonl"
BLOCK_REQUESTS_AGAIN = "block-requests-2.jsonl"
"""The requests of the client that lived on, up to the second cut."""
TRACED = ("virtqueue_pop", "virtio_blk_handle_write", "virtio_blk_req_complete")
"""The events that QEMU has to log."""

_SECTOR_BYTES = 512
"""The sector of virtio-blk; the disk's own sectors do not matter (virtio 1.2, 5.2.6)."""
_LINE = re.compile(r"\d+@(?P<s>\d+)\.(?P<us>\d{6}):(?P<event>\w+) (?P<fields>.*)")
_FIELDS = re.compile(r"(\w+) (\S+)")
_OK = "0"


class BlockKind(StrEnum):
    """The requests whose effect a disk must not forget."""

    WRITE = "write"
    FLUSH = "flush"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockRequest:
    """One request that the disk completed without an error; the reader knows the instant of time 0."""

    kind: BlockKind
    submitted_ns: int
    completed_ns: int
    offset_bytes: int = 0
    length_bytes: int = 0
    is_forced: bool = False
    """Whether a write must be durable before its completion (FUA); virtio has no FUA."""


def parse_trace(text: str) -> tuple[BlockRequest, ...]:
    """The requests in QEMU's log, by the host's clock, in the order of completion.

    Requests that began before the log did are left out. So are lines of other events.
    """
    begun: dict[str, BlockRequest] = {}
    done = []
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) is None:
            continue
        time_ns = int(match["s"]) * 1_000_000_000 + int(match["us"]) * 1_000
        fields = dict(_FIELDS.findall(match["fields"]))
        match match["event"]:
            case "virtqueue_pop" if (fields.get("in_num"), fields.get("out_num")) == ("1", "1"):
                # A request of virtio-blk has a header to read and a status to write; only a flush
                # has no more.
                begun[fields.get("elem", "")] = BlockRequest(
                    kind=BlockKind.FLUSH, submitted_ns=time_ns, completed_ns=0
                )
            case "virtqueue_pop":
                begun.pop(fields.get("elem", ""), None)
            case "virtio_blk_handle_write":
                if (write := _write_of(fields, time_ns)) is not None:
                    begun[fields.get("req", "")] = write
            case "virtio_blk_req_complete":
                known = begun.pop(fields.get("req", ""), None)
                if known is not None and fields.get("status") == _OK:
                    done.append(replace(known, completed_ns=time_ns))
    return tuple(done)


def _write_of(fields: dict[str, str], time_ns: int) -> BlockRequest | None:
    """A write that is not completed yet."""
    sector, count = fields.get("sector", ""), fields.get("nsectors", "")
    if not (sector.isdecimal() and count.isdecimal()):
        return None
    return BlockRequest(
        kind=BlockKind.WRITE,
        submitted_ns=time_ns,
        completed_ns=0,
        offset_bytes=int(sector) * _SECTOR_BYTES,
        length_bytes=int(count) * _SECTOR_BYTES,
    )


FILE_REQUESTS = "file-requests.jsonl"
FILE_REQUESTS_AGAIN = "file-requests-2.jsonl"
"""The requests of the client that lived on, up to the second cut."""

_HEADER = Struct(BLOCK_HEADER)


LoadSector = tuple[int, int, int]
"""A sector of the load: the operation that wrote it, its block, and its place in the block."""


class FileKind(StrEnum):
    """The requests whose answers promise something."""

    WRITE = "write"
    COMMIT = "commit"
    """NFS calls it COMMIT, SMB calls it FLUSH."""
    NAME = "name"
    """A name was made, moved or removed."""
    RESIZE = "resize"
    """A file's length was set: ZFS need not log an older write beyond the new end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRequest:
    """One request that the NAS carried out; the reader knows the instant of time 0."""

    kind: FileKind
    submitted_ns: int
    completed_ns: int
    file: str = ""
    """The handle, in hexadecimal; empty for a name."""
    offset_bytes: int = 0
    length_bytes: int = 0
    """A length of 0 in a commit is the rest of the file."""
    is_forced: bool = False
    """The answer promises that the write is stable."""
    verifier: str = ""
    """The life of the server; a commit vouches for the writes of its own life alone."""
    sectors: tuple[tuple[int, LoadSector], ...] = ()
    """The load's sectors in a write, each with its byte in the file before it."""
    names: tuple[str, ...] = ()
    """The names in Latin-1, which keeps every byte."""


def load_sectors_in(content: bytes) -> Iterator[tuple[int, LoadSector]]:
    """The load's sectors in the content, each with its first byte before it.

    A sector counts once its header is whole, even if the content ends before the sector does.
    """
    place = content.find(BLOCK_MAGIC)
    while 0 <= place <= len(content) - _HEADER.size:
        _magic, _trial, _file, operation, block, sector = _HEADER.unpack_from(content, place)
        yield place, (int(operation), int(block), int(sector))
        place = content.find(BLOCK_MAGIC, place + _HEADER.size)


def whole_sectors_of(content: bytes, *, offset_bytes: int) -> tuple[tuple[int, LoadSector], ...]:
    """The load's sectors that a write has as a whole, from first byte to last."""
    return tuple(
        (offset_bytes + place, sector)
        for place, sector in load_sectors_in(content)
        if place + SECTOR_BYTES <= len(content)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordingClock:
    """The host's time at which the recording's clock was 0, and the bound on its error."""

    began_ns: int
    error_ns: int

    def dated(self, request: BlockRequest | FileRequest) -> BlockRequest | FileRequest:
        """The same request, its times by the recording's clock."""
        return replace(
            request,
            submitted_ns=request.submitted_ns - self.began_ns,
            completed_ns=request.completed_ns - self.began_ns,
        )


def clock_of(spans: Sequence[tuple[int, int]], recorded_ns: Sequence[int]) -> RecordingClock | None:
    """The clock of a recording, from the marks' times: sent, acknowledged, and recorded.

    `spans` are the host's times of sending and acknowledgement, `recorded_ns` the recording's times. Each
    mark was recorded between its two host times; all marks together leave an error of some tens of
    microseconds. None without marks, or when they contradict each other since the host's clock was set
    meanwhile.
    """
    pairs = list(zip(spans, recorded_ns, strict=False))
    if not pairs:
        return None
    earliest = max(sent_ns - log_ns for (sent_ns, _), log_ns in pairs)
    latest = min(acknowledged_ns - log_ns for (_, acknowledged_ns), log_ns in pairs)
    if earliest > latest:
        return None
    middle = (earliest + latest) // 2
    return RecordingClock(began_ns=middle, error_ns=latest - middle)

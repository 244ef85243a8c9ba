"""The requests for the client's disk, and their completions: a filesystem builds on these promises.

QEMU logs each request when it takes the request from the guest, and when it gives it back. The
source is its `docs/devel/tracing.rst`; the events are in `hw/block/trace-events` and
`hw/virtio/trace-events`. The log puts nothing between client and NAS. Its cost is a line of text a
request. `torture.facts.wire` logs the requests for a disk that QEMU does not serve.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

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
    begun: dict[str, tuple[BlockKind, int, int, int]] = {}
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
                begun[fields.get("elem", "")] = (BlockKind.FLUSH, time_ns, 0, 0)
            case "virtqueue_pop":
                begun.pop(fields.get("elem", ""), None)
            case "virtio_blk_handle_write":
                place = _place(fields)
                if place is not None:
                    begun[fields.get("req", "")] = (BlockKind.WRITE, time_ns, *place)
            case "virtio_blk_req_complete":
                known = begun.pop(fields.get("req", ""), None)
                if known is not None and fields.get("status") == _OK:
                    kind, submitted_ns, offset, length = known
                    done.append(
                        BlockRequest(
                            kind=kind,
                            submitted_ns=submitted_ns,
                            completed_ns=time_ns,
                            offset_bytes=offset,
                            length_bytes=length,
                        )
                    )
    return tuple(done)


def _place(fields: dict[str, str]) -> tuple[int, int] | None:
    """Offset and length of a write, in bytes."""
    sector, count = fields.get("sector", ""), fields.get("nsectors", "")
    if not (sector.isdecimal() and count.isdecimal()):
        return None
    return int(sector) * _SECTOR_BYTES, int(count) * _SECTOR_BYTES

"""What the client's disk was asked, and when it said so: the promises that a filesystem builds on.

QEMU tells of each request as it takes it from the guest and gives it back (its `docs/devel/tracing.rst`;
events of `hw/block/trace-events` and `hw/virtio/trace-events`). Nothing stands between client and NAS
for it, and it costs a line of text a request. Of a disk that is none of QEMU's
`torture.facts.wire` tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

BLOCK_REQUESTS = "block-requests.jsonl"
BLOCK_REQUESTS_AGAIN = "block-requests-2.jsonl"
"""Of the client that lived on, up to the second cut."""
TRACED = ("virtqueue_pop", "virtio_blk_handle_write", "virtio_blk_req_complete")
"""The events that QEMU has to tell of."""

_SECTOR_BYTES = 512
"""Of virtio-blk, whatever the disk's own are (virtio 1.2, 5.2.6)."""
_LINE = re.compile(r"\d+@(?P<s>\d+)\.(?P<us>\d{6}):(?P<event>\w+) (?P<fields>.*)")
_FIELDS = re.compile(r"(\w+) (\S+)")
_OK = "0"


class BlockKind(StrEnum):
    """What a disk can be asked that it must not forget."""

    WRITE = "write"
    FLUSH = "flush"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockRequest:
    """One request that the disk completed without an error; times since an instant the reader knows."""

    kind: BlockKind
    submitted_ns: int
    completed_ns: int
    offset_bytes: int = 0
    length_bytes: int = 0
    is_forced: bool = False
    """Of a write: that it was not to be completed before it is durable (FUA); virtio has no such."""

    def since(self, instant_ns: int) -> BlockRequest:
        """The same with its times counted from there."""
        return replace(
            self,
            submitted_ns=self.submitted_ns - instant_ns,
            completed_ns=self.completed_ns - instant_ns,
        )


def parse_trace(text: str) -> tuple[BlockRequest, ...]:
    """What QEMU's log says, by the host's clock, in the order of completion.

    Requests that were under way when it began to tell are left out, and lines that are none of its.
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
                # a header to read and a status to write: of virtio-blk's requests only a flush
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

"""Frames of a network card in a pcap file, and the TCP segments in them.

dpkt loads a hundred protocols, so it is imported only where frames are read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

_NS = 1_000_000_000
_LENGTH_MAX_BYTES = 1 << 18
"""The largest frame: a card that leaves segmentation to the host passes 64 KiB at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """An Ethernet frame, and the host's time at which it passed."""

    time_ns: int
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """One direction of a connection: sender and receiver, each an address and a port."""

    sender: tuple[bytes, int]
    receiver: tuple[bytes, int]

    @property
    def back(self) -> Flow:
        """The other direction."""
        return Flow(sender=self.receiver, receiver=self.sender)


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """The TCP content of a frame (RFC 9293, 3.1); `sequence` is the number of its first byte."""

    time_ns: int
    flow: Flow
    sequence: int
    is_first: bool
    """Whether it is a SYN: the connection's first byte has the next sequence number."""
    content: bytes


class FrameFile:
    """A pcap file under construction; it is whole after each `write`."""

    def __init__(self, file: Path) -> None:
        import dpkt

        self._file: IO[bytes] = file.open("wb")
        self._writer: Any = dpkt.pcap.Writer(self._file, snaplen=_LENGTH_MAX_BYTES, nano=True)

    def write(self, frames: Iterable[Frame]) -> None:
        """Add frames, in the order in which they passed."""
        for frame in frames:
            self._writer.writepkt_time(frame.content, Decimal(frame.time_ns) / _NS)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_frames(file: Path) -> Iterator[Frame]:
    """The frames of a file, up to where it is truncated or garbled; raises `OSError`."""
    import dpkt

    with file.open("rb") as opened:
        try:
            for time_s, content in dpkt.pcap.Reader(opened):
                yield Frame(time_ns=int(time_s * _NS), content=content)
        except (dpkt.UnpackError, ValueError):
            return


def segments_in(frames: Iterable[Frame]) -> Iterator[Segment]:
    """The TCP segments over IPv4 that carry data or begin a connection."""
    import dpkt

    for frame in frames:
        try:
            packet = dpkt.ethernet.Ethernet(frame.content).data
        except dpkt.UnpackError:
            continue
        if not isinstance(packet, dpkt.ip.IP) or not isinstance(packet.data, dpkt.tcp.TCP):
            continue
        tcp = packet.data
        is_first = bool(tcp.flags & dpkt.tcp.TH_SYN)
        if is_first or tcp.data:
            yield Segment(
                time_ns=frame.time_ns,
                flow=Flow(sender=(packet.src, tcp.sport), receiver=(packet.dst, tcp.dport)),
                sequence=tcp.seq,
                is_first=is_first,
                content=b"" if is_first else bytes(tcp.data),
            )

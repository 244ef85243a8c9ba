"""Frames of a network card, in a file that Wireshark opens, and the TCP segments in them.

dpkt knows a hundred protocols and loads them all: only where frames are at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

_NS = 1_000_000_000
_LENGTH_MAX_BYTES = 1 << 18
"""Of a frame: a card that leaves cutting to the host hands over 64 KiB at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """An Ethernet frame, and when it passed by the host's clock."""

    time_ns: int
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """One direction of a connection: who sends to whom, each an address and a port."""

    sender: tuple[bytes, int]
    receiver: tuple[bytes, int]

    @property
    def back(self) -> Flow:
        """The other direction."""
        return Flow(sender=self.receiver, receiver=self.sender)


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """What TCP carried in a frame (RFC 9293, 3.1); `sequence` is the number of its first byte."""

    time_ns: int
    flow: Flow
    sequence: int
    is_first: bool
    """A SYN: the number after its own is that of the first byte there will be."""
    content: bytes


class FrameFile:
    """A file of frames that is being written; it is whole after each `write`."""

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
        """Write no more."""
        self._file.close()


def read_frames(file: Path) -> Iterator[Frame]:
    """The frames of a file, up to where it is cut short or garbled; raises `OSError`."""
    import dpkt

    with file.open("rb") as opened:
        try:
            for time_s, content in dpkt.pcap.Reader(opened):
                yield Frame(time_ns=int(time_s * _NS), content=content)
        except (dpkt.UnpackError, ValueError):
            return


def segments_in(frames: Iterable[Frame]) -> Iterator[Segment]:
    """What of the frames is TCP over IPv4 and carries something, or begins a connection."""
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

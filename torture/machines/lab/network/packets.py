"""A recording of every packet on a network card of this namespace, with the kernel's own times.

It uses a packet socket with a ring that the kernel fills (packet(7); Linux
Documentation/networking/packet_mmap.rst, TPACKET_V3). A plain socket's buffer holds three of the 64
KiB frames that a tap carries. On a busy host more arrive before the reader runs. Python's `socket`
has no names for it; the numbers are those of Linux `include/uapi/linux/if_packet.h`.
"""

from __future__ import annotations

import mmap
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from torture.errors import HarnessError
from torture.facts.wire.frames import Frame, FrameFile

_SOL_PACKET, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 263, 5, 6, 10
_TPACKET_V3 = 2
_ETH_P_ALL = 3
_BLOCK_BYTES, _BLOCKS = 1 << 20, 32
_FRAME_BYTES = 1 << 11
"""It has no meaning in this version, but it must divide a block."""
_RETIRED_AFTER_MS = 20
"""After this time the kernel hands over a partly filled block, so that the last frames are not kept
back."""
_RING = Struct("=IIIIIII")
"""`struct tpacket_req3`."""
_BLOCK = Struct("=8xIII")
"""`struct tpacket_block_desc`: status, frames, and where the first is."""
_STATUS_AT = 8
_PACKET = Struct("=IIIIIIHH")
"""`struct tpacket3_hdr`: offset of the next one, s, ns, bytes here, bytes in all, status, offset of
the frame."""
_COUNTS = Struct("=III")
"""`struct tpacket_stats_v3`: packets, dropped packets for lack of room in the ring, and freezes of
the ring."""
_TO_KERNEL, _TO_US = 0, 1
_NS = 1_000_000_000
_POLL_S = 0.05
_END_DEADLINE_S = 10


class PacketRecorder:
    """Records the packets of `interface` until it is stopped.

    Raises `HarnessError` where there is no such card or the user may not listen to it.
    """

    def __init__(self, interface: str, *, into: Path) -> None:
        self.file = into
        self._interface = interface
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            try:
                self._ring = self._ring_of(interface)
                self._frames = FrameFile(into)
            except OSError:
                self._socket.close()
                raise
        except OSError as error:
            raise HarnessError(
                f"{interface} cannot be listened to: {error}", hint="tools/doctor"
            ) from error
        self._failure: OSError | None = None
        self._next_block = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(
            target=self._write_down, name=f"packets of {interface}", daemon=True
        )
        self._thread.start()

    def _ring_of(self, interface: str) -> mmap.mmap:
        """A socket whose ring the kernel fills from now on."""
        frames = _BLOCK_BYTES * _BLOCKS // _FRAME_BYTES
        ring = _RING.pack(_BLOCK_BYTES, _BLOCKS, _FRAME_BYTES, frames, _RETIRED_AFTER_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
        mapped = mmap.mmap(self._socket.fileno(), _BLOCK_BYTES * _BLOCKS)
        self._socket.bind((interface, _ETH_P_ALL))
        return mapped

    def stop(self) -> None:
        """Return once every packet is in the file; raises `HarnessError` when some are missing.

        The audit follows a connection to its first gap. With a gap it would silently cover less.
        """
        if self._is_over.is_set():
            return
        self._is_over.set()
        self._thread.join(_END_DEADLINE_S)
        counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _COUNTS.size)
        packets, lost, _ = _COUNTS.unpack(counts)
        self._socket.close()
        self._ring.close()
        self._frames.close()
        if self._failure is not None:
            raise HarnessError(f"{self.file} could not be written: {self._failure}")
        if lost:
            raise HarnessError(
                f"of {packets} frames that passed {self._interface} {lost} were not seen: this host is "
                f"too busy",
                hint="fewer --jobs",
            )

    def _write_down(self) -> None:
        try:
            self._write_down_until_over()
        except OSError as error:
            self._failure = error

    def _write_down_until_over(self) -> None:
        while True:
            # read before the ring: packets from before the end are in it by then
            is_over = self._is_over.wait(0)
            if not self._select(_RETIRED_AFTER_MS * 3 / 1000 if is_over else _POLL_S) and is_over:
                return
            while (block := self._full_block()) is not None:
                self._frames.write(self._frames_of(block))
                self._give_back(block)

    def _select(self, wait_s: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def _full_block(self) -> int | None:
        """The offset of the next block, if the kernel has handed it over."""
        block = self._next_block * _BLOCK_BYTES
        status, _, _ = _BLOCK.unpack_from(self._ring, block)
        return block if status & _TO_US else None

    def _frames_of(self, block: int) -> Iterator[Frame]:
        _, count, first = _BLOCK.unpack_from(self._ring, block)
        at = block + first
        for _ in range(count):
            beyond, s, ns, length, _, _, mac, _ = _PACKET.unpack_from(self._ring, at)
            begin = at + mac
            yield Frame(time_ns=s * _NS + ns, content=self._ring[begin : begin + length])
            at += beyond

    def _give_back(self, block: int) -> None:
        at = block + _STATUS_AT
        self._ring[at : at + 4] = _TO_KERNEL.to_bytes(4, "little")
        self._next_block = (self._next_block + 1) % _BLOCKS

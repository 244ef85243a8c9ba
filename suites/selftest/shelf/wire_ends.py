"""Both ends of a modelled link, for a test inside of a sandbox."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from torture.machines.host.abilities import run_host
from torture.machines.lab.network.wire import QUEUE_FRAMES, Pace, Wire, wait_for_link

A, B = "a0", "b0"

_ETHERTYPE = b"\x88\xb5"
"""IEEE 802's first one for local experiments: no other frame has it."""
_HEADER = b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x01" + _ETHERTYPE
_NUMBER = Struct("=I")
_TIMESPEC = Struct("=qq")
_ETH_P_ALL = 3
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_BUFFER_BYTES = 1 << 24
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_IPV6_OFF = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
_INTERFACE_REQUEST = Struct("16sH22x")


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A frame: its number, its size, and the time at which it came."""

    number: int
    size: int
    time_ns: int


def frame_of(number: int, size: int) -> bytes:
    """A frame to all, which carries its number."""
    return (_HEADER + _NUMBER.pack(number)).ljust(size, b"\0")


def arrival_of(frame: bytes, time_ns: int) -> Arrival | None:
    """None for a frame of the kernel's."""
    if frame[12:14] != _ETHERTYPE:
        return None
    (number,) = _NUMBER.unpack_from(frame, 14)
    return Arrival(number=number, size=len(frame), time_ns=time_ns)


class TapEnd:
    """The kernel's end of a tap whose other end the wire has."""

    def __init__(self, tap: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind((tap, _ETH_P_ALL))

    def send(self, number: int, size: int) -> int:
        """Returns the time before the frame went."""
        frame = frame_of(number, size)
        now = time.time_ns()
        self._socket.send(frame)
        return now

    def arrivals(self, quiet_s: float) -> list[Arrival]:
        """The frames that came, with the kernel's times, once none has come for this time."""
        found = []
        while select.select([self._socket], [], [], quiet_s)[0]:
            frame, ancillary, _, address = self._socket.recvmsg(1 << 16, 64)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            s, ns = _TIMESPEC.unpack(ancillary[0][2])
            if arrival := arrival_of(frame, s * 1_000_000_000 + ns):
                found.append(arrival)
        return found


class Card:
    """A network card on a tap, as QEMU has it."""

    def __init__(self, tap: str) -> None:
        self._fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        request = _INTERFACE_REQUEST.pack(tap.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(self._fd, _TUNSETIFF, request)

    def send(self, number: int, size: int = 60) -> int:
        """Returns the time before the frame went."""
        now = time.time_ns()
        os.write(self._fd, frame_of(number, size))
        return now

    def next_arrival(self, deadline_s: float) -> Arrival | None:
        """The next frame, or None when there is none in time."""
        end = time.monotonic() + deadline_s
        while (left_s := end - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left_s)[0]:
                frame = os.read(self._fd, 1 << 16)
                if arrival := arrival_of(frame, time.time_ns()):
                    return arrival
        return None


def make_taps() -> None:
    """The taps of `wired`, in a namespace whose kernel sends no frames of its own."""
    if _IPV6_OFF.exists():
        _IPV6_OFF.write_text("1")
    for tap in (A, B):
        run_host("ip", "tuntap", "add", "dev", tap, "mode", "tap")
        run_host("ip", "link", "set", tap, "txqueuelen", str(QUEUE_FRAMES), "up")


@contextmanager
def wired(*, rate_bits_per_s: int, one_way_us: int) -> Iterator[tuple[Wire, TapEnd, TapEnd]]:
    """A wire, and both of its ends."""
    make_taps()
    pace = Pace(rate_bits_per_s=rate_bits_per_s, one_way_us=one_way_us)
    with Wire(pace, to_nas=A, to_others=B) as wire:
        wait_for_link(A, B)
        yield wire, TapEnd(A), TapEnd(B)


def links() -> dict[str, tuple[str, bool]]:
    """All devices of this namespace, with their bridge and whether they are up."""
    listed = json.loads(run_host("ip", "-j", "link"))
    return {link["ifname"]: (link.get("master", ""), "UP" in link["flags"]) for link in listed}

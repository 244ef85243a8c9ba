"""Commands and answers of invented connections: which answer belongs to which command, and when."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import dpkt
import pytest

from torture.errors import HarnessError
from torture.facts.evidence.requests import BlockKind, BlockRequest
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.frames import Frame
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire

NAS, CLIENT = (bytes([10, 77, 0, 2]), 4420), (bytes([10, 77, 0, 3]), 40000)
OTHER = (NAS[0], 3260)
WRITE, FLUSH, READ = 1, 0, 2


@dataclass(kw_only=True)
class Wire:
    """The frames that passed so far; each takes a nanosecond."""

    frames: list[Frame] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)
    """By the sender's port."""

    def begin(self) -> None:
        """A new connection."""
        for sender, receiver in ((CLIENT, NAS), (NAS, CLIENT)):
            self._next[sender[1]] = 1000
            self._pass(sender, receiver, b"", flags=dpkt.tcp.TH_SYN)
            self._next[sender[1]] += 1

    def ask(self, opcode: int, *, tag: int, parts: int = 1) -> None:
        """A command, in so many frames."""
        entry = bytearray(64)
        entry[0] = opcode
        struct.pack_into("<H", entry, 2, tag)
        self._send(CLIENT, NAS, struct.pack("<BBBBI", 4, 0, 72, 0, 72) + entry, parts)

    def answer(self, tag: int, *, status: int = 0, parts: int = 1, is_seen: bool = True) -> None:
        """The response to a command, in so many frames."""
        capsule = struct.pack("<BBBBI12xHH", 5, 0, 24, 0, 24, tag, status)
        self._send(NAS, CLIENT, capsule, parts)
        if not is_seen:
            self.frames.pop()

    def _send(
        self, sender: tuple[bytes, int], receiver: tuple[bytes, int], content: bytes, parts: int
    ) -> None:
        length = -(-len(content) // parts)
        for at in range(0, len(content), length):
            self._pass(sender, receiver, content[at : at + length])

    def _pass(
        self, sender: tuple[bytes, int], receiver: tuple[bytes, int], content: bytes, flags: int = 0
    ) -> None:
        tcp = dpkt.tcp.TCP(
            sport=sender[1], dport=receiver[1], seq=self._next[sender[1]], flags=flags, data=content
        )
        ip = dpkt.ip.IP(src=sender[0], dst=receiver[0], p=dpkt.ip.IP_PROTO_TCP, data=tcp)
        self._next[sender[1]] += len(content)
        frame = bytes(dpkt.ethernet.Ethernet(data=ip))
        self.frames.append(Frame(time_ns=len(self.frames), content=frame))

    @property
    def requests(self) -> tuple[BlockRequest, ...]:
        """The requests that are read from it."""
        return DiskWire(protocol=NvmeTcpOnWire(4420)).requests(self.frames, sector_bytes=512)


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.begin()
    return wire


def test_a_request_lasts_from_its_first_byte_to_the_last_of_its_answer(wire: Wire) -> None:
    wire.ask(WRITE, tag=1, parts=3)
    wire.answer(1, parts=2)
    [request] = wire.requests
    assert (request.submitted_ns, request.completed_ns) == (2, 6)


def test_answers_find_their_commands_in_any_order(wire: Wire) -> None:
    wire.ask(WRITE, tag=1)
    wire.ask(FLUSH, tag=2)
    wire.answer(2)
    wire.answer(1)
    assert [x.kind for x in wire.requests] == [BlockKind.FLUSH, BlockKind.WRITE]


def test_a_failed_command_promises_nothing(wire: Wire) -> None:
    wire.ask(WRITE, tag=1)
    wire.answer(1, status=2)
    assert wire.requests == ()


def test_an_answer_of_a_read_is_none_of_a_write_that_had_its_tag(wire: Wire) -> None:
    """Where the write's own answer was not heard, the answers after it are not either."""
    wire.ask(WRITE, tag=1)
    wire.ask(READ, tag=1)
    wire.answer(1)
    assert wire.requests == ()


def test_an_answer_does_not_belong_to_a_command_of_an_older_connection(
    wire: Wire,
) -> None:
    """A NAS that came back answers commands that were sent again, with tags that begin anew."""
    wire.ask(WRITE, tag=1)
    wire.begin()
    wire.answer(1)
    assert wire.requests == ()


def test_after_an_answer_that_was_not_captured_none_is_found(wire: Wire) -> None:
    wire.ask(WRITE, tag=1)
    wire.answer(1)
    wire.ask(WRITE, tag=2)
    wire.answer(2, is_seen=False)
    wire.ask(WRITE, tag=3)
    wire.answer(3)
    assert len(wire.requests) == 1


def test_a_stream_that_begins_like_no_unit_is_an_error(wire: Wire) -> None:
    """A length of 4 bytes is shorter than what says it. Later bytes would be silence."""
    wire.ask(WRITE, tag=1)
    wire.answer(1)
    assert len(wire.requests) == 1
    wire._send(NAS, CLIENT, struct.pack("<BBBBI", 5, 0, 24, 0, 4), 1)
    with pytest.raises(HarnessError, match="are not the beginning of a protocol unit"):
        assert wire.requests


def test_another_protocol_beside_it_is_none_of_its_units(wire: Wire) -> None:
    for sender, receiver in ((CLIENT, OTHER), (OTHER, CLIENT)):
        wire._next[sender[1]] = 1000
        wire._pass(sender, receiver, b"", flags=dpkt.tcp.TH_SYN)
        wire._next[sender[1]] += 1
    wire._pass(OTHER, CLIENT, struct.pack("<BBBBI", 5, 0, 24, 0, 4))
    assert wire.requests == ()

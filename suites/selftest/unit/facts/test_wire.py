"""Frames, streams and units of a wire, and the commands and answers of SCSI and NVMe."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.errors import HarnessError
from torture.facts.evidence.requests import BlockKind, BlockRequest
from torture.facts.wire.disk_requests import Answer, Command, DiskWire
from torture.facts.wire.frames import Frame, FrameFile, read_frames, segments_in
from torture.facts.wire.iscsi_pdus import IscsiOnWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.facts.wire.pdus import Framing, Pdu, PduSplitter, Stream

LENGTH_FIRST = Framing(base_bytes=2, length_of=lambda head: int(head[0]) or None, head_bytes=4)
"""A unit's first byte is its length."""


def frame(text: bytes, time_ns: int = 1) -> Frame:
    return Frame(time_ns=time_ns, content=text)


@given(st.lists(st.tuples(st.integers(0, 2**61), st.binary(max_size=90)), max_size=5))
def test_a_file_has_the_frames_and_their_times_to_the_nanosecond(
    tmp_path_factory: pytest.TempPathFactory, passed: Sequence[tuple[int, bytes]]
) -> None:
    file = tmp_path_factory.mktemp("frames") / "wire.pcap"
    frames = [frame(content, time_ns % (2**32 * 10**9)) for time_ns, content in passed]
    writer = FrameFile(file)
    writer.write(frames)
    writer.close()
    assert list(read_frames(file)) == frames


@given(st.binary(max_size=200))
def test_a_file_of_anything_is_no_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("frames") / "wire.pcap"
    file.write_bytes(content)
    frames = list(read_frames(file))
    assert all(isinstance(segment.sequence, int) for segment in segments_in(frames))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="wire"):
        list(read_frames(tmp_path / "wire.pcap"))


@given(
    st.binary(min_size=1, max_size=60),
    st.sampled_from([0, 7, 2**32 - 20]),
    st.data(),
)
def test_bytes_come_in_order_although_segments_come_twice_or_late(
    content: bytes, start: int, data: st.DataObject
) -> None:
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(1, 20))
    pieces = data.draw(st.lists(places, max_size=30))
    stream, got, sent = Stream(next_sequence=start), b"", set[int]()
    for place, length in pieces:
        piece = content[place : place + length]
        got += stream.feed((start + place) % 2**32, piece)
        sent |= set(range(place, place + len(piece)))
        whole = next((x for x in range(len(content)) if x not in sent), len(content))
        assert got == content[:whole]


def test_early_segments_wait_where_the_numbers_wrap() -> None:
    stream = Stream(next_sequence=2**32 - 4)
    assert stream.feed(2, b"cd") == b""
    assert stream.feed(2**32 - 4, b"wxyzab") == b"wxyzabcd"


def test_a_stream_gives_up_when_missing_bytes_are_not_sent_again() -> None:
    stream = Stream(next_sequence=0)
    for number in range(1, 2000):
        assert stream.feed(number * 10, bytes(10)) == b""
    assert stream.is_lost
    assert stream.feed(0, bytes(10)) == b""


@given(st.lists(st.binary(min_size=1, max_size=8), max_size=8), st.lists(st.integers(1, 9)))
def test_units_are_cut_wherever_the_bytes_were_parted(
    bodies: Sequence[bytes], cuts: Sequence[int]
) -> None:
    units = [bytes([len(body) + 1]) + body for body in bodies]
    left, cutter, heads = b"".join(units), PduSplitter(LENGTH_FIRST), []
    for time_ns, length in enumerate([*cuts, 1000]):
        for pdu in cutter.feed(left[:length], time_ns=time_ns):
            assert pdu.begun_ns <= pdu.known_ns == time_ns
            heads.append(pdu.head)
        left = left[length:]
    assert heads == [unit[:4] for unit in units]
    assert not cutter.is_lost


def test_a_unit_is_known_with_its_head_and_begins_with_its_first_byte() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    unit = bytes([8, 1, 2, 3, 4, 5, 6, 7])
    assert list(cutter.feed(unit[:1], time_ns=10)) == []
    [pdu] = cutter.feed(unit[1:5], time_ns=20)
    assert (pdu.begun_ns, pdu.known_ns, pdu.head) == (10, 20, unit[:4])
    assert list(cutter.feed(unit[5:], time_ns=30)) == []


def test_after_bytes_that_begin_no_unit_none_is_found() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    assert list(cutter.feed(bytes([0, 0, 2, 0]), time_ns=0)) == []
    assert cutter.is_lost
    assert list(cutter.feed(bytes([2, 0]), time_ns=0)) == []


def test_a_unit_shorter_than_its_own_beginning_is_none() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    assert list(cutter.feed(bytes([1, 0, 2, 0]), time_ns=0)) == []
    assert cutter.is_lost


# Commands and answers of SCSI and NVMe: kind, place, length, and whether they are forced.

NVME, ISCSI = NvmeTcpOnWire(4420), IscsiOnWire(3260)
WRITE, FLUSH = BlockKind.WRITE, BlockKind.FLUSH


def pdu(head: bytes) -> Pdu:
    return Pdu(head=head, begun_ns=0, known_ns=0)


def scsi(cdb: str, *, tag: int = 7) -> Pdu:
    head = bytearray(48)
    head[0], head[16:20] = 0x41, tag.to_bytes(4, "big")
    head[32 : 32 + len(bytes.fromhex(cdb))] = bytes.fromhex(cdb)
    return pdu(bytes(head))


@pytest.mark.parametrize(
    ("cdb", "first", "sectors", "is_forced"),
    [
        ("0a 01 02 03 05", 0x010203, 5, False),
        ("0a e1 02 03 00", 0x010203, 256, False),
        ("2a 00 01 02 03 04 00 00 08", 0x01020304, 8, False),
        ("2a 08 01 02 03 04 00 00 08", 0x01020304, 8, True),
        ("aa 08 01 02 03 04 00 00 01 00", 0x01020304, 256, True),
        ("8a 00 00 00 00 01 02 03 04 05 00 00 00 10", 0x0102030405, 16, False),
        ("8a 08 00 00 00 01 02 03 04 05 00 00 00 10", 0x0102030405, 16, True),
    ],
)
def test_writes_of_scsi(cdb: str, first: int, sectors: int, is_forced: bool) -> None:
    assert ISCSI.command(scsi(cdb)) == Command(
        tag=7, kind=WRITE, first_sector=first, sectors=sectors, is_forced=is_forced
    )


@pytest.mark.parametrize("cdb", ["35", "91"])
def test_a_cache_is_synchronized_whole_and_before_it_is_answered(cdb: str) -> None:
    assert ISCSI.command(scsi(cdb)) == Command(tag=7, kind=FLUSH)
    assert ISCSI.command(scsi(cdb + "02")) == 7, "answered at once"
    assert ISCSI.command(scsi(cdb + "00 00 00 00 01")) == 7, "not from the first block"


@pytest.mark.parametrize("cdb", ["28 00 00 00 00 00 00 00 08", "42", "93", "00"])
def test_other_commands_have_only_a_tag(cdb: str) -> None:
    assert ISCSI.command(scsi(cdb)) == 7


@pytest.mark.parametrize(
    ("response", "status", "is_good"), [(0, 0, True), (0, 2, False), (1, 0, False)]
)
def test_answers_of_scsi(response: int, status: int, is_good: bool) -> None:
    head = bytearray(48)
    head[0], head[2], head[3], head[19] = 0x21, response, status, 9
    assert ISCSI.answer(pdu(bytes(head))) == Answer(tag=9, is_good=is_good)
    head[0] = 0x20  # a NOP's answer
    assert ISCSI.answer(pdu(bytes(head))) is None


def nvme(opcode: int, *, tag: int = 7, first: int = 0, count: int = 0, queue: int = 1) -> Pdu:
    entry = bytearray(64)
    entry[0] = opcode
    struct.pack_into("<H", entry, 2, tag)
    struct.pack_into("<QI", entry, 40, first, count)
    if opcode == 0x7F:
        entry[4] = 1
        struct.pack_into("<H", entry, 42, queue)
    return pdu(struct.pack("<BBBBI", 4, 0, 72, 0, 72) + bytes(entry))


def test_commands_of_nvme() -> None:
    write = Command(tag=7, kind=WRITE, first_sector=2**40, sectors=8)
    assert NVME.command(nvme(1, first=2**40, count=7)) == write
    forced = NVME.command(nvme(1, first=2**40, count=7 | 1 << 30))
    assert forced == replace(write, is_forced=True)
    assert NVME.command(nvme(0)) == Command(tag=7, kind=FLUSH)
    assert NVME.command(nvme(2)) == 7, "a read"


def test_the_queue_of_administration_is_left_out() -> None:
    assert NVME.is_ignored(nvme(0x7F, queue=0))
    assert not NVME.is_ignored(nvme(0x7F, queue=1))
    assert not NVME.is_ignored(nvme(0))


@pytest.mark.parametrize(("status", "is_good"), [(0, True), (1, True), (2, False), (0x4004, False)])
def test_answers_of_nvme(status: int, is_good: bool) -> None:
    """The lowest bit is the phase of a queue in memory."""
    head = struct.pack("<BBBBI", 5, 0, 24, 0, 24) + struct.pack("<12xHH", 9, status)
    assert NVME.answer(pdu(head)) == Answer(tag=9, is_good=is_good)


# Invented connections: which answer belongs to which command, and when.

NAS, CLIENT = (bytes([10, 77, 0, 2]), 4420), (bytes([10, 77, 0, 3]), 40000)
OTHER = (NAS[0], 3260)
WRITE_OPCODE, FLUSH_OPCODE, READ_OPCODE = 1, 0, 2


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
    wire.ask(WRITE_OPCODE, tag=1, parts=3)
    wire.answer(1, parts=2)
    [request] = wire.requests
    assert (request.submitted_ns, request.completed_ns) == (2, 6)


def test_answers_find_their_commands_in_any_order(wire: Wire) -> None:
    wire.ask(WRITE_OPCODE, tag=1)
    wire.ask(FLUSH_OPCODE, tag=2)
    wire.answer(2)
    wire.answer(1)
    assert [x.kind for x in wire.requests] == [FLUSH, WRITE]


def test_a_failed_command_promises_nothing(wire: Wire) -> None:
    wire.ask(WRITE_OPCODE, tag=1)
    wire.answer(1, status=2)
    assert wire.requests == ()


def test_an_answer_of_a_read_is_none_of_a_write_that_had_its_tag(wire: Wire) -> None:
    """Where the write's own answer was not heard, the answers after it are not either."""
    wire.ask(WRITE_OPCODE, tag=1)
    wire.ask(READ_OPCODE, tag=1)
    wire.answer(1)
    assert wire.requests == ()


def test_an_answer_does_not_belong_to_a_command_of_an_older_connection(wire: Wire) -> None:
    """A NAS that came back answers commands that were sent again, with tags that begin anew."""
    wire.ask(WRITE_OPCODE, tag=1)
    wire.begin()
    wire.answer(1)
    assert wire.requests == ()


def test_after_an_answer_that_was_not_captured_none_is_found(wire: Wire) -> None:
    wire.ask(WRITE_OPCODE, tag=1)
    wire.answer(1)
    wire.ask(WRITE_OPCODE, tag=2)
    wire.answer(2, is_seen=False)
    wire.ask(WRITE_OPCODE, tag=3)
    wire.answer(3)
    assert len(wire.requests) == 1


def test_a_stream_that_begins_like_no_unit_is_an_error(wire: Wire) -> None:
    """A length of 4 bytes is shorter than what says it. Later bytes would be silence."""
    wire.ask(WRITE_OPCODE, tag=1)
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

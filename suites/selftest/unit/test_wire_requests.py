"""What is read off a recorded wire, whole, cut off, garbled, with pieces missing; and by which rule."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.evidence.block_requests import BlockKind, BlockRequest
from torture.wire.conversation import requests_on_wire
from torture.wire.disk_protocol import Answer, Command, DiskProtocol
from torture.wire.frames import Frame, read_frames, segments_in
from torture.wire.iscsi_pdus import IscsiOnWire
from torture.wire.nvme_pdus import NvmeTcpOnWire
from torture.wire.pdus import Pdu

RECORDED = Path(__file__).parents[1] / "recorded" / "wire"
NVME, ISCSI = NvmeTcpOnWire(4420), IscsiOnWire(3260)
PROTOCOLS: dict[str, DiskProtocol] = {"nvme-tcp": NVME, "iscsi": ISCSI}
WRITE, FLUSH = BlockKind.WRITE, BlockKind.FLUSH


@pytest.fixture(scope="module", params=sorted(PROTOCOLS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def frames(name: str, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Frame]:
    file = tmp_path_factory.mktemp("wire") / "wire.pcap"
    file.write_bytes(gzip.decompress((RECORDED / f"{name}.pcap.gz").read_bytes()))
    return list(read_frames(file))


@pytest.fixture(scope="module")
def told(name: str, frames: Sequence[Frame]) -> Sequence[BlockRequest]:
    return requests_on_wire(frames, PROTOCOLS[name], sector_bytes=512)


def test_a_filesystem_commits_by_writes_a_flush_and_a_forced_write(
    told: Sequence[BlockRequest],
) -> None:
    """ext4 in its guest: a transaction, a flush of it, its commit block with FUA (fs/jbd2/commit.c)."""
    forced = [number for number, request in enumerate(told) if request.is_forced]
    assert len(forced) > 3
    commits = [number for number in forced[1:] if told[number - 1].kind is FLUSH]
    assert len(commits) > len(forced) // 2
    for number in commits:
        commit, flush = told[number], told[number - 1]
        assert commit.submitted_ns > flush.completed_ns
        assert commit.length_bytes == 4096
        [*_, before] = [x for x in told[: number - 1] if x.offset_bytes < commit.offset_bytes]
        assert before.kind in {WRITE, FLUSH}


def test_requests_are_told_in_order_with_times_and_places(told: Sequence[BlockRequest]) -> None:
    completed = [request.completed_ns for request in told]
    assert completed == sorted(completed)
    for request in told:
        assert 0 < request.completed_ns - request.submitted_ns < 2_000_000_000
        assert request.offset_bytes % 4096 == request.length_bytes % 4096 == 0
        assert (request.length_bytes == 0) == (request.kind is FLUSH)


def test_sectors_are_as_long_as_the_disks_are(
    name: str, frames: Sequence[Frame], told: Sequence[BlockRequest]
) -> None:
    eight_times = requests_on_wire(frames, PROTOCOLS[name], sector_bytes=4096)
    assert [x.offset_bytes for x in eight_times] == [x.offset_bytes * 8 for x in told]
    assert [x.length_bytes for x in eight_times] == [x.length_bytes * 8 for x in told]


def test_frames_that_end_early_tell_less_and_nothing_else(
    name: str, frames: Sequence[Frame], told: Sequence[BlockRequest]
) -> None:
    for length in range(0, len(frames), 61):
        some = requests_on_wire(frames[:length], PROTOCOLS[name], sector_bytes=512)
        assert some == told[: len(some)]


def test_a_connection_whose_beginning_was_not_heard_tells_nothing(
    name: str, frames: Sequence[Frame]
) -> None:
    begun = [segment.time_ns for segment in segments_in(frames) if segment.is_first]
    late = [frame for frame in frames if frame.time_ns not in begun]
    assert requests_on_wire(late, PROTOCOLS[name], sector_bytes=512) == ()


def test_after_a_frame_that_was_not_heard_only_what_was_asked_before_is_told(
    name: str, frames: Sequence[Frame], told: Sequence[BlockRequest]
) -> None:
    """Of the answers: all that are told are true. Of the commands: no answer finds another's."""
    for missing in range(0, len(frames), 37):
        heard = [*frames[:missing], *frames[missing + 1 :]]
        some = requests_on_wire(heard, PROTOCOLS[name], sector_bytes=512)
        known = {replace(request, completed_ns=0) for request in told}
        assert {replace(request, completed_ns=0) for request in some} <= known


@given(data=st.data())
def test_garbled_frames_are_no_error(
    name: str, frames: Sequence[Frame], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, 250))
    garbage = data.draw(st.binary(max_size=80))
    place = data.draw(st.integers(0, 200))
    content = frames[number].content
    garbled = content[:place] + garbage + content[place + len(garbage) :]
    heard = [*frames[:300]]
    heard[number] = replace(frames[number], content=garbled)
    assert isinstance(requests_on_wire(heard, PROTOCOLS[name], sector_bytes=512), tuple)


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
    assert NVME.is_left_out(nvme(0x7F, queue=0))
    assert not NVME.is_left_out(nvme(0x7F, queue=1))
    assert not NVME.is_left_out(nvme(0))


@pytest.mark.parametrize(("status", "is_good"), [(0, True), (1, True), (2, False), (0x4004, False)])
def test_answers_of_nvme(status: int, is_good: bool) -> None:
    """The lowest bit is the phase of a queue in memory."""
    head = struct.pack("<BBBBI", 5, 0, 24, 0, 24) + struct.pack("<12xHH", 9, status)
    assert NVME.answer(pdu(head)) == Answer(tag=9, is_good=is_good)

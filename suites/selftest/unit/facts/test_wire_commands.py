"""Commands and answers of SCSI and NVMe: kind, place, length, and whether they are forced."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from torture.facts.evidence.requests import BlockKind
from torture.facts.wire.disk_requests import Answer, Command
from torture.facts.wire.iscsi_pdus import IscsiOnWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.facts.wire.pdus import Pdu

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

"""Requests to disks and for files, read off a recorded wire: whole, truncated, garbled, incomplete."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.errors import HarnessError
from torture.facts.evidence.requests import (
    BlockKind,
    BlockRequest,
    FileKind,
    FileRequest,
    whole_sectors_of,
)
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.files_on_wire import FileWire
from torture.facts.wire.frames import Frame, read_frames, segments_in
from torture.facts.wire.iscsi_pdus import IscsiOnWire
from torture.facts.wire.nfs3_calls import Nfs3OnWire
from torture.facts.wire.nfs4_compounds import Nfs4OnWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.facts.wire.pdus import Pdu
from torture.facts.wire.rpc import FRAMING, ShortError, Xdr
from torture.facts.wire.smb2_messages import Smb2OnWire
from vmimages.client.load.blocks import Encoder

RECORDED = Path(__file__).parents[2] / "recorded" / "wire"
NFS3, NFS4, SMB = Nfs3OnWire(2049), Nfs4OnWire(2049), Smb2OnWire(445)
WIRES: dict[str, DiskWire | FileWire] = {
    "iscsi": DiskWire(protocol=IscsiOnWire(3260)),
    "nvme-tcp": DiskWire(protocol=NvmeTcpOnWire(4420)),
    "nfs3": FileWire(protocol=NFS3),
    "nfs4": FileWire(protocol=NFS4),
    "smb": FileWire(protocol=SMB),
}
WRITE, COMMIT, NAME = FileKind.WRITE, FileKind.COMMIT, FileKind.NAME
Found = Sequence[BlockRequest | FileRequest]

of_disks = pytest.mark.parametrize("name", ["iscsi", "nvme-tcp"], indirect=True)
of_files = pytest.mark.parametrize("name", ["nfs3", "nfs4", "smb"], indirect=True)


@pytest.fixture(scope="module", params=WIRES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def frames(name: str, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Frame]:
    file = tmp_path_factory.mktemp("wire") / "wire.pcap"
    file.write_bytes(gzip.decompress((RECORDED / f"{name}.pcap.gz").read_bytes()))
    return list(read_frames(file))


def parsed(name: str, frames: Sequence[Frame], *, sector_bytes: int = 512) -> Sequence[Any]:
    return WIRES[name].requests(frames, sector_bytes=sector_bytes)


@pytest.fixture(scope="module")
def whole(name: str, frames: Sequence[Frame]) -> Sequence[Any]:
    return parsed(name, frames)


def test_answers_come_in_order_behind_their_calls(whole: Found) -> None:
    completed = [request.completed_ns for request in whole]
    assert completed == sorted(completed)
    assert all(0 < x.completed_ns - x.submitted_ns < 2_000_000_000 for x in whole)


def numbers_of(frames: Sequence[Frame], *, step: int) -> range:
    """Those of some frames; the disks' recordings have more, and take longer."""
    return range(0, len(frames), step if len(frames) < 300 else 8 * step)


def test_truncated_frames_yield_fewer_requests_and_no_others(
    name: str, frames: Sequence[Frame], whole: Found
) -> None:
    for length in numbers_of(frames, step=7):
        some = parsed(name, frames[:length])
        assert some == whole[: len(some)]


def test_a_frame_that_is_missing_makes_no_request_up(
    name: str, frames: Sequence[Frame], whole: Found
) -> None:
    """Of the answers: each one found is true. Of the commands: no answer finds another's."""
    known = {replace(request, completed_ns=0) for request in whole}
    for missing in numbers_of(frames, step=4):
        some = parsed(name, [*frames[:missing], *frames[missing + 1 :]])
        assert {replace(request, completed_ns=0) for request in some} <= known


@given(data=st.data())
def test_garbled_frames_are_read_or_refused(
    name: str, frames: Sequence[Frame], data: st.DataObject
) -> None:
    """A stream that cannot be cut any more is refused: its silence would look like an idle disk's."""
    some = [*frames[:300]]
    number = data.draw(st.integers(0, len(some) - 1))
    garbage = data.draw(st.binary(max_size=120))
    place = data.draw(st.integers(0, 400))
    content = some[number].content
    garbled = content[:place] + garbage + content[place + len(garbage) :]
    some[number] = replace(some[number], content=garbled)
    with suppress(HarnessError):
        assert isinstance(parsed(name, some), tuple)


# Disks.


@of_disks
def test_a_filesystem_commits_by_writes_a_flush_and_a_forced_write(
    whole: Sequence[BlockRequest],
) -> None:
    """ext4 in its guest: a transaction, a flush of it, its commit block with FUA (fs/jbd2/commit.c)."""
    forced = [number for number, request in enumerate(whole) if request.is_forced]
    assert len(forced) > 3
    commits = [number for number in forced[1:] if whole[number - 1].kind is BlockKind.FLUSH]
    assert len(commits) > len(forced) // 2
    for number in commits:
        commit, flush = whole[number], whole[number - 1]
        assert commit.submitted_ns > flush.completed_ns
        assert commit.length_bytes == 4096
        [*_, before] = [x for x in whole[: number - 1] if x.offset_bytes < commit.offset_bytes]
        assert before.kind in {BlockKind.WRITE, BlockKind.FLUSH}


@of_disks
def test_a_disks_requests_are_of_whole_blocks(whole: Sequence[BlockRequest]) -> None:
    for request in whole:
        assert request.offset_bytes % 4096 == request.length_bytes % 4096 == 0
        assert (request.length_bytes == 0) == (request.kind is BlockKind.FLUSH)


@of_disks
def test_sectors_are_as_long_as_the_disks_are(
    name: str, frames: Sequence[Frame], whole: Sequence[BlockRequest]
) -> None:
    eight_times = parsed(name, frames, sector_bytes=4096)
    assert [x.offset_bytes for x in eight_times] == [x.offset_bytes * 8 for x in whole]
    assert [x.length_bytes for x in eight_times] == [x.length_bytes * 8 for x in whole]


@of_disks
def test_a_connection_without_its_beginning_yields_no_request(
    name: str, frames: Sequence[Frame]
) -> None:
    begun = [segment.time_ns for segment in segments_in(frames) if segment.is_first]
    late = [frame for frame in frames if frame.time_ns not in begun]
    assert parsed(name, late) == ()


# Files.


@of_files
def test_a_write_has_the_sectors_of_the_load_at_their_places(whole: Sequence[FileRequest]) -> None:
    writes = [request for request in whole if request.kind is WRITE and request.sectors]
    assert len(writes) > 5
    for write in writes:
        assert len(write.sectors) * 512 == write.length_bytes
        for offset, (operation, block, sector) in write.sectors:
            assert offset == block * 4096 + sector * 512
            assert operation > 0


@of_files
def test_commits_are_of_files_that_were_written(name: str, whole: Sequence[FileRequest]) -> None:
    written: set[str] = set()
    of_written = 0
    for request in whole:
        if request.kind is WRITE:
            written.add(request.file)
        elif request.kind is COMMIT:
            of_written += request.file in written
    assert of_written >= 5
    lives = {request.verifier for request in whole if request.kind in (WRITE, COMMIT)}
    assert len(lives) == 1
    assert (lives == {""}) == (name == "smb")


@of_files
def test_over_nfs_names_and_stable_writes_are_found(
    name: str, whole: Sequence[FileRequest]
) -> None:
    names = {name for request in whole for name in request.names}
    assert any(request.is_forced for request in whole) == (name != "smb")
    assert {len(request.names) for request in whole if request.kind is NAME} <= {1, 2}
    assert any(known.startswith("f0") for known in names) == (name != "smb")


@of_files
def test_a_call_that_was_sent_again_is_as_old_as_its_first(
    name: str, frames: Sequence[Frame], whole: Sequence[FileRequest]
) -> None:
    """A server may have carried it out the first time, and keep its answer."""
    again = 10_000_000_000
    shifted = [replace(frame, time_ns=frame.time_ns + again) for frame in frames]
    twice = parsed(name, [*frames, *shifted])
    assert [x.submitted_ns for x in twice] == [x.submitted_ns for x in whole] * 2


def _record(*words: int, tail: bytes = b"") -> Pdu:
    content = struct.pack(f">{len(words)}I", *words) + tail
    head = struct.pack(">I", 1 << 31 | len(content)) + content
    return Pdu(head=head, begun_ns=0, known_ns=0)


def test_a_write_that_the_server_took_in_part_promises_that_part() -> None:
    content = Encoder(7).block(file=1, seq=3, index=0)
    arguments = struct.pack(">I4sQIII", 4, b"abcd", 8192, 4096, 2, len(content)) + content
    call = _record(9, 0, 2, 100003, 3, 7, 0, 0, 0, 0, tail=arguments)
    [(xid, asked)] = NFS3.calls(call)
    assert asked is not None
    assert (xid, asked.offset_bytes, asked.is_forced) == (9, 8192, True)
    answer = struct.pack(">IIIIIQ", 0, 0, 0, 1024, 2, 5)
    outcome = NFS3.outcome(asked, answer)
    assert outcome is not None
    assert (outcome.count_bytes, outcome.is_stable) == (1024, True)
    kept = whole_sectors_of(content[: outcome.count_bytes], offset_bytes=asked.offset_bytes)
    assert kept == ((8192, (3, 0, 0)), (8704, (3, 0, 1)))
    assert NFS3.outcome(asked, struct.pack(">I", 28)) is None, "no space left"


def test_a_create_that_may_find_its_file_promises_nothing() -> None:
    there = struct.pack(">I4sI4s", 4, b"abcd", 2, b"f1\0\0")
    for how, names in ((0, None), (1, (b"f1",)), (2, (b"f1",))):
        call = _record(9, 0, 2, 100003, 3, 8, 0, 0, 0, 0, tail=there + struct.pack(">I", how))
        [(_, asked)] = NFS3.calls(call)
        assert (asked and asked.names) == names


@pytest.mark.parametrize(("before", "after", "is_made"), [(5, 5, False), (5, 6, True)])
def test_an_open_makes_a_name_where_its_directory_changed(
    before: int, after: int, is_made: bool
) -> None:
    opened = struct.pack(">II16sIQQ", 18, 0, bytes(16), 1, before, after)
    answer = struct.pack(">III", 0, 0, 1) + opened
    exclusive = struct.pack(">IIIIQI", 18, 0, 1, 0, 7, 0) + struct.pack(
        ">IIQII4s", 1, 2, 99, 0, 2, b"f1\0\0"
    )
    call = _record(9, 0, 2, 100003, 4, 1, 0, 0, 0, 0, tail=struct.pack(">III", 0, 2, 1) + exclusive)
    [(_, asked)] = NFS4.calls(call)
    assert asked is not None
    assert asked.names == (b"f1",)
    assert (NFS4.outcome(asked, answer) is not None) is is_made


@given(st.binary(max_size=200))
def test_garbage_is_no_call(content: bytes) -> None:
    pdu = Pdu(head=content, begun_ns=0, known_ns=0)
    for protocol in (NFS3, NFS4, SMB):
        for _, call in protocol.calls(pdu):
            if call is not None:
                protocol.outcome(call, content)
    assert not list(NFS3.calls(pdu)) or len(content) >= FRAMING.base_bytes


def test_xdr_says_where_the_bytes_end() -> None:
    reader = Xdr(struct.pack(">I3s", 3, b"abc") + b"\0" + struct.pack(">Q", 1 << 40))
    assert (reader.opaque(), reader.long(), reader.rest()) == (b"abc", 1 << 40, b"")
    for read in (reader.word, reader.long, reader.opaque):
        with pytest.raises(ShortError):
            read()


def test_a_call_of_another_version_is_none_of_ours() -> None:
    call = _record(9, 0, 2, 100003, 3, 21, 0, 0, 0, 0, tail=struct.pack(">I4sQI", 4, b"abcd", 0, 0))
    assert len(list(NFS3.calls(call))) == 1
    assert list(NFS4.calls(call)) == []


@pytest.mark.parametrize(("status", "is_final"), [(0x103, False), (0, True), (0xC0000022, True)])
def test_an_smb_server_that_has_only_begun_has_not_answered(status: int, is_final: bool) -> None:
    head = struct.pack("<4sHHIHHIIQ32x", b"\xfeSMB", 64, 1, status, 7, 1, 1, 0, 5)
    unit = struct.pack(">I", len(head) + 4) + head + bytes(4)
    answers = list(SMB.answers(Pdu(head=unit, begun_ns=0, known_ns=0)))
    assert [number for number, _ in answers] == ([5] if is_final else [])

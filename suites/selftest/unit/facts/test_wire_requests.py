"""Requests read off a recorded wire: whole, truncated, garbled, incomplete; and the rules of a disk."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.errors import HarnessError
from torture.facts.evidence.requests import BlockKind, BlockRequest
from torture.facts.wire.disk_requests import DiskProtocol, DiskWire
from torture.facts.wire.frames import Frame, read_frames, segments_in
from torture.facts.wire.iscsi_pdus import IscsiOnWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire

RECORDED = Path(__file__).parents[2] / "recorded" / "wire"
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
def found(name: str, frames: Sequence[Frame]) -> Sequence[BlockRequest]:
    return DiskWire(protocol=PROTOCOLS[name]).requests(frames, sector_bytes=512)


def test_a_filesystem_commits_by_writes_a_flush_and_a_forced_write(
    found: Sequence[BlockRequest],
) -> None:
    """ext4 in its guest: a transaction, a flush of it, its commit block with FUA (fs/jbd2/commit.c)."""
    forced = [number for number, request in enumerate(found) if request.is_forced]
    assert len(forced) > 3
    commits = [number for number in forced[1:] if found[number - 1].kind is FLUSH]
    assert len(commits) > len(forced) // 2
    for number in commits:
        commit, flush = found[number], found[number - 1]
        assert commit.submitted_ns > flush.completed_ns
        assert commit.length_bytes == 4096
        [*_, before] = [x for x in found[: number - 1] if x.offset_bytes < commit.offset_bytes]
        assert before.kind in {WRITE, FLUSH}


def test_requests_are_found_in_order_with_times_and_places(found: Sequence[BlockRequest]) -> None:
    completed = [request.completed_ns for request in found]
    assert completed == sorted(completed)
    for request in found:
        assert 0 < request.completed_ns - request.submitted_ns < 2_000_000_000
        assert request.offset_bytes % 4096 == request.length_bytes % 4096 == 0
        assert (request.length_bytes == 0) == (request.kind is FLUSH)


def test_sectors_are_as_long_as_the_disks_are(
    name: str, frames: Sequence[Frame], found: Sequence[BlockRequest]
) -> None:
    eight_times = DiskWire(protocol=PROTOCOLS[name]).requests(frames, sector_bytes=4096)
    assert [x.offset_bytes for x in eight_times] == [x.offset_bytes * 8 for x in found]
    assert [x.length_bytes for x in eight_times] == [x.length_bytes * 8 for x in found]


def test_truncated_frames_yield_fewer_requests_and_no_others(
    name: str, frames: Sequence[Frame], found: Sequence[BlockRequest]
) -> None:
    for length in range(0, len(frames), 61):
        some = DiskWire(protocol=PROTOCOLS[name]).requests(frames[:length], sector_bytes=512)
        assert some == found[: len(some)]


def test_a_connection_without_its_beginning_yields_no_request(
    name: str, frames: Sequence[Frame]
) -> None:
    begun = [segment.time_ns for segment in segments_in(frames) if segment.is_first]
    late = [frame for frame in frames if frame.time_ns not in begun]
    assert DiskWire(protocol=PROTOCOLS[name]).requests(late, sector_bytes=512) == ()


def test_after_a_lost_frame_only_earlier_commands_are_found(
    name: str, frames: Sequence[Frame], found: Sequence[BlockRequest]
) -> None:
    """Of the answers: each one found is true. Of the commands: no answer finds another's."""
    for missing in range(0, len(frames), 37):
        parsed = [*frames[:missing], *frames[missing + 1 :]]
        some = DiskWire(protocol=PROTOCOLS[name]).requests(parsed, sector_bytes=512)
        known = {replace(request, completed_ns=0) for request in found}
        assert {replace(request, completed_ns=0) for request in some} <= known


@given(data=st.data())
def test_garbled_frames_are_read_or_refused(
    name: str, frames: Sequence[Frame], data: st.DataObject
) -> None:
    """A stream that cannot be cut any more is refused: its silence would look like an idle disk's."""
    number = data.draw(st.integers(0, 250))
    garbage = data.draw(st.binary(max_size=80))
    place = data.draw(st.integers(0, 200))
    content = frames[number].content
    garbled = content[:place] + garbage + content[place + len(garbage) :]
    parsed = [*frames[:300]]
    parsed[number] = replace(frames[number], content=garbled)
    with suppress(HarnessError):
        assert isinstance(
            DiskWire(protocol=PROTOCOLS[name]).requests(parsed, sector_bytes=512), tuple
        )

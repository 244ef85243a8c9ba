"""Blocks split over disks: columns and parity that only look like the intent log's."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock, zil_block
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.recording.intent_log import (
    EMBEDDED_CHECKSUM_MAGIC,
    ZIL_MAGIC_AT,
    Role,
    log_blocks_in,
)
from torture.oracles.audit.disk_writes import disk_writes_in
from torture.oracles.audit.invariants import Finding, Invariant
from vmimages.client.load.blocks import Encoder

MIB = 1 << 20
OTHER = FIRST_BLOCK + 6 * MIB


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, whole_on=())


def found(story: Story) -> list[tuple[Invariant, tuple[int, ...]]]:
    findings = story.findings(sync=Sync.ALWAYS)
    return [(finding.invariant, finding.uncovered) for finding in findings]


def test_with_split_blocks_no_data_are_accused_once_the_log_points_to_some(
    story: Story,
) -> None:
    own = story.write(BLOCK, offset=OTHER)
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=22))), offset=MIB)
    for _ in range(8):
        story.write(zil_block(), offset=2 * MIB)
    assert found(story) == []


@pytest.mark.parametrize(
    ("offset", "length", "physical_sector", "is_part"),
    [
        (MIB, 4096, 512, True),
        (MIB + 512, 4096, 512, True),
        (MIB - 512, 3584, 512, True),
        (MIB + 4096, 4096, 512, False),
        (MIB - 4096, 4096, 512, False),
        (MIB + 4096, 4096, 4096, True),
        (MIB - 4096, 8192, 4096, True),
        (MIB + 8192, 4096, 4096, False),
    ],
)
def test_a_write_beside_a_log_column_on_another_disk_is_a_log_column(
    story: Story, offset: int, length: int, physical_sector: int, is_part: bool
) -> None:
    """On a raidz, the column with the block's end, or its parity, looks like data."""
    story.physical_sector = physical_sector
    story.write(zil_block(), offset=MIB)
    other = story.write(bytes(length), offset=offset, disk=1)
    classified = disk_writes_in(story.recorded(), cut=len(story.events) - 1, is_split=True)[other]
    assert (classified.role is Role.ZIL) is is_part
    story.write(uberblock(21), offset=0)
    assert (found(story) == []) is is_part


@pytest.mark.parametrize(
    ("rows", "gap", "is_part"), [(1, 0, True), (3, 0, True), (1, 4096, False), (0.5, 0, False)]
)
def test_a_log_block_at_the_end_of_a_draids_row_continues_in_the_next_one(
    story: Story, rows: float, gap: int, is_part: bool
) -> None:
    """The row's end is 16 MiB behind another one; the next row has other disks, or the same one."""
    end = FIRST_BLOCK + int(rows * 16) * MIB
    story.write(zil_block(), offset=end - len(zil_block()))
    for disk in (0, 1):
        story.write(METADATA, offset=end + gap, disk=disk)
    story.write(uberblock(21), offset=0)
    assert (found(story) == []) is is_part


def test_a_write_that_may_hold_a_log_column_is_not_accused(story: Story) -> None:
    story.write(zil_block(), offset=MIB)
    story.write(bytes(16384), offset=MIB, disk=1)
    story.write(uberblock(21), offset=0)
    assert found(story) == []


def test_a_disk_that_holds_whole_blocks_has_no_parts(story: Story) -> None:
    story.whole_on = ("a", "b")
    story.write(zil_block(), offset=MIB)
    own = story.write(METADATA, offset=MIB, disk=1)
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]


# A raidz's parity may begin like a log block; its numbers are those of no chain.

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "raidz-columns.json"
PADDING, CHAIN, NUMBER, RECORDS = 64, 104, 128, 184
PROPERTIES = struct.pack("<Q", 0x80090902005F005F)
BYTES = 4096


def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORDED.read_text())
    return content


def column(name: str) -> bytes:
    return zlib.decompress(base64.b64decode(recorded()[name]))


def first_column(number: int) -> bytes:
    """The first data column of a log block, with a sector of the operation of this number."""
    block = bytearray(log_block((0, 512), is_split=True)[: BYTES - 512])
    block[56:64] = PROPERTIES
    struct.pack_into("<QQQQ", block, CHAIN, 1, 1, 81, number + 1)
    return bytes(block) + Encoder(7).block(file=1, seq=number, index=0)[:512]


def other_column(*places: int) -> bytes:
    """A column with something at these places, and zeroes where the log's magic is."""
    content = bytearray(BYTES)
    for place in places:
        content[place] = 0x5A
    return bytes(content)


def parity(*columns: bytes) -> bytes:
    """The XOR of the columns (OpenZFS `module/zfs/vdev_raidz.c`)."""
    total = bytearray(max(map(len, columns)))
    for one in columns:
        for place, byte in enumerate(one):
            total[place] ^= byte
    return bytes(total)


def broken(story: Story, written: Iterable[tuple[int, bytes]]) -> list[Finding]:
    """The findings about the log's chain, if these columns of log blocks are written and flushed."""
    for number, second in written:
        story.begins(number)
        story.write(first_column(number), disk=0)
        story.write(second, disk=1)
        story.flush(disk=0)
        story.flush(disk=1)
        story.is_done(number)
    found = story.findings(sync=Sync.ALWAYS)
    return [one for one in found if one.invariant is Invariant.LOG_CHAIN_IS_WHOLE]


def test_of_two_recorded_columns_with_the_magic_only_one_is_a_log_block() -> None:
    magic = struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC)
    for name in ("parity", "first"):
        assert column(name)[ZIL_MAGIC_AT:].startswith(magic)
    assert list(log_blocks_in(column("parity"))) == []
    [block] = log_blocks_in(column("first"))
    assert block.place is not None
    assert (block.place.number, block.txg) == (recorded()["number"], recorded()["txg"])


@pytest.mark.parametrize(("place", "is_block"), [(4, False), (72, False), (62, False), (100, True)])
def test_a_log_blocks_padding_and_its_pointers_kind_tell_it_from_parity(
    place: int, is_block: bool
) -> None:
    for first in (first_column(1), log_block((0, 512))):
        found = list(log_blocks_in(parity(first, other_column(place))))
        assert len(found) == is_block
        assert len(list(log_blocks_in(first))) == 1


def test_two_parities_with_one_strange_chain_are_no_gap(story: Story) -> None:
    """Blocks 1 and 3 hold the same metadata, so their parities show one chain without number 2."""
    same = other_column(PADDING, CHAIN)
    spoilt = other_column(PADDING, ZIL_MAGIC_AT)
    parities = [parity(first_column(n), other) for n, other in ((1, same), (2, spoilt), (3, same))]
    assert broken(story, enumerate(parities, start=1)) == []


@pytest.mark.parametrize("others", [(), (RECORDS, RECORDS + 16), (PADDING, CHAIN), (NUMBER,)])
def test_a_gap_is_found_beside_any_parity(story: Story, others: tuple[int, ...]) -> None:
    written = [(n, parity(first_column(n), other_column(*others))) for n in (1, 3)]
    assert broken(story, written)


@given(st.integers(0, 63), st.integers(1, (1 << 64) - 1))
def test_the_records_of_a_block_end_where_others_begin(place: int, junk: int) -> None:
    """A disk merges a column with another one; its numbers are of no record."""
    whole = bytearray(first_column(1)[: RECORDS + 192 + 512])
    [block] = log_blocks_in(bytes(whole))
    kind = 64 + junk % ((1 << 63) - 64)
    follows = struct.pack("<QQQQ", kind, 64 + place * 8, junk, 1) + bytes(600)
    [merged] = log_blocks_in(bytes(whole) + follows)
    assert (merged.writes, merged.txg, merged.changes) == (block.writes, block.txg, b"")

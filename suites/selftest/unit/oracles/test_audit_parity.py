"""A raidz's parity may begin like a log block; its numbers are those of no chain."""

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

from suites.selftest.unit.audit_story import Story, log_block
from torture.facts.axes.sync import Sync
from torture.facts.recording.intent_log import log_blocks_in
from torture.facts.recording.roles import EMBEDDED_CHECKSUM_MAGIC, ZIL_MAGIC_AT
from torture.oracles.audit.invariants import Finding, Invariant
from vmimages.client.load.blocks import Encoder

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "raidz-columns.json"
PADDING, CHAIN, NUMBER, RECORDS = 64, 104, 128, 184
PROPERTIES = struct.pack("<Q", 0x80090902005F005F)
BYTES = 4096


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, whole_on=())


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

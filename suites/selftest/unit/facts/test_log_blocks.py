"""Blocks of the intent log: their pointers, and the chains that distinguish two boots of a NAS."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.recording.intent_log import chains_in, log_blocks_in

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "pointing-zil-block.json"
MIB = 1 << 20
PLACE = FIRST_BLOCK + 4 * MIB


def real() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORDED.read_text())
    return content


def real_block() -> bytes:
    return zlib.decompress(base64.b64decode(real()["zlib"]))


def test_a_real_block_points_to_where_the_data_were_really_written() -> None:
    [block] = log_blocks_in(real_block())
    assert block.is_whole
    assert block.writes == ()
    assert len(block.pointed) == 2
    for write, seen in zip(block.pointed, real()["pointed"], strict=True):
        assert (write.offset_bytes, write.length_bytes) == (seen["offset"], seen["length"])
        assert write.txg == seen["txg"]
        [extent] = write.extents
        assert [[FIRST_BLOCK + extent.offset_bytes, extent.length_bytes]] == seen["written"]


@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 4096))
def test_a_garbled_pointer_is_no_error(garbage: bytes, place: int, length: int) -> None:
    block = bytearray(real_block())
    block[place : place + len(garbage)] = garbage
    for found in log_blocks_in(bytes(block[:length])):
        assert len(found.pointed) <= 21, "more than there is room for"


def test_a_record_whose_data_are_zeroes_or_in_its_pointer_points_to_nothing() -> None:
    hole = bytes(48) + pointer(FIRST_BLOCK, txg=22)[48:]
    embedded = bytearray(pointer(PLACE, txg=22))
    embedded[52] |= 0x80  # bit 39 of its properties
    [block] = log_blocks_in(pointing((0, hole), (MIB, bytes(embedded))))
    assert block.pointed == ()
    assert block.writes == ((0, 512), (MIB, 512))


def test_a_write_by_pointer_is_one_of_the_whole_block() -> None:
    [block] = log_blocks_in(pointing((3 * BLOCK_BYTES + 512, pointer(PLACE, txg=22))))
    [write] = block.pointed
    assert (write.offset_bytes, write.length_bytes) == (3 * BLOCK_BYTES, BLOCK_BYTES)


# The chains of the intent logs distinguish two boots of a NAS.


def of_chain(first: int, second: int) -> bytes:
    block = bytearray(log_block((0, 512)))
    struct.pack_into("<QQQQ", block, 104, first, second, 81, 2)
    return bytes(block)


def test_each_chain_is_found_once_and_no_other_content_is_a_chain(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(BLOCK)
    story.write(of_chain(7, 8))
    story.write(uberblock(5))
    story.write(METADATA)
    story.write(of_chain(7, 8))
    assert chains_in(story.recorded()) == {(7, 8)}


def test_adjacent_blocks_in_one_write_are_both_found(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(of_chain(7, 8) + of_chain(9, 8))
    assert chains_in(story.recorded()) == {(7, 8), (9, 8)}

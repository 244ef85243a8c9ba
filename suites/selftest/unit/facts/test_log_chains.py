"""The chains of the intent logs distinguish two boots of a NAS."""

from __future__ import annotations

import struct
from pathlib import Path

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from torture.facts.recording.intent_log import chains_in


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

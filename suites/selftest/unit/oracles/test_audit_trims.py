"""Trims and zeroes over blocks that the pool needs are found; over free space they are not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, log_block, uberblock
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20
TXG = 22
"""Of the records that `log_block` makes."""
AREA = 256 * 1024
LABEL = 4 * AREA
"""Where a disk's first label begins."""
UBERBLOCK_AT = 128 * 1024


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A pool with a label whose uberblock is known."""
    story = Story(folder=tmp_path)
    committed(story, 5)
    return story


def committed(story: Story, txg: int) -> None:
    story.flush()
    story.write(uberblock(txg), offset=LABEL + UBERBLOCK_AT + txg * 1024)
    story.flush()


def taking(story: Story) -> list[int]:
    return [x.event for x in story.findings() if x.invariant is Invariant.TRIMMED_IS_FREE]


def test_the_log_must_not_be_trimmed_before_its_group_is_committed(story: Story) -> None:
    story.write(log_block((0, 512)), offset=8 * MIB)
    early = [
        story.trim(offset=8 * MIB + 512, length=512),
        story.zero(offset=0, length=8 * MIB + 1),
    ]
    committed(story, TXG - 1)
    early.append(story.trim(offset=8 * MIB, length=MIB))
    committed(story, TXG)
    story.trim(offset=8 * MIB, length=MIB)
    assert taking(story) == [early[0], early[1], early[2]]


@pytest.mark.parametrize(
    ("offset", "length", "disk"),
    [(7 * MIB, MIB, 0), (8 * MIB + 4096, MIB, 0), (8 * MIB, MIB, 1), (8 * MIB, 0, 0)],
)
def test_a_trim_beside_the_log_is_no_finding(
    story: Story, offset: int, length: int, disk: int
) -> None:
    story.write(log_block((0, 512)), offset=8 * MIB)
    story.trim(offset=offset, length=length, disk=disk)
    assert taking(story) == []


def test_the_log_of_a_committed_group_and_one_without_records_may_be_trimmed(story: Story) -> None:
    committed(story, TXG)
    story.write(log_block((0, 512)), offset=8 * MIB)
    story.write(log_block(), offset=9 * MIB)
    story.trim(offset=8 * MIB, length=2 * MIB)
    assert taking(story) == []


def test_of_merged_blocks_the_one_that_is_free_first_counts(story: Story) -> None:
    late = bytearray(log_block((0, 512)))
    struct.pack_into("<Q", late, 184 + 16, TXG + 5)
    story.write(log_block((0, 512)) + late, offset=8 * MIB)
    committed(story, TXG)
    story.trim(offset=8 * MIB, length=2 * MIB)
    assert taking(story) == []


def test_with_a_split_log_block_no_trim_is_reported(story: Story) -> None:
    story.write(log_block((0, 512), is_split=True), offset=8 * MIB)
    story.trim(offset=8 * MIB, length=MIB)
    assert taking(story) == []


@pytest.mark.parametrize(
    ("offset", "length", "is_taken"),
    [
        (LABEL, 512, True),
        (LABEL + AREA - 512, 512, True),
        (LABEL + AREA, AREA, False),
        (LABEL - 512, 512, False),
        (0, 64 * MIB, True),
    ],
)
def test_a_label_must_not_be_trimmed(
    story: Story, offset: int, length: int, *, is_taken: bool
) -> None:
    seen = [story.trim(offset=offset, length=length), story.zero(offset=offset, length=length)]
    story.trim(offset=offset, length=length, disk=1)
    assert taking(story) == (seen if is_taken else [])


def test_a_label_of_a_disk_that_is_no_part_of_the_pool_may_be(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(uberblock(0), offset=LABEL + UBERBLOCK_AT)
    story.write(BLOCK, offset=LABEL)
    story.trim(offset=LABEL, length=AREA)
    assert taking(story) == []

"""The phases that a load alone seldom reaches, and trims over blocks that the pool needs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import (
    BLOCK,
    METADATA,
    Story,
    log_block,
    uberblock,
    zil_block,
)
from torture.facts.evidence.cut_document import Phase
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20


@pytest.mark.parametrize("offset", [MIB - 4096 + 512, MIB, MIB + 4096 - 512])
def test_a_block_of_the_log_reuses_where_it_meets_an_older_one(story: Story, offset: int) -> None:
    story.write(zil_block(), offset=MIB)
    story.write(METADATA, offset=MIB + 4096)
    story.flush()
    story.write(uberblock(5))
    story.flush()
    block = story.submit(zil_block(), offset=offset)
    assert story.phase() is Phase.ZIL_REUSED
    story.complete(block)
    assert story.phase() is Phase.ZIL_REUSED
    story.flush()
    assert story.phase() is Phase.ZIL_FLUSHED


@pytest.mark.parametrize("offset", [MIB - 4096, MIB + 4096])
def test_its_neighbours_reuse_nothing(story: Story, offset: int) -> None:
    story.write(zil_block(), offset=MIB)
    story.flush()
    story.write(zil_block(), offset=offset)
    assert story.phase() is Phase.ZIL_WRITTEN


@pytest.mark.parametrize(
    ("tells", "phase"), [(True, Phase.METADATA_WRITTEN), (False, Phase.TXG_WRITTEN)]
)
def test_without_distinct_lengths_metadata_and_data_are_one_phase(
    story: Story, tells: bool, phase: Phase
) -> None:
    story.write(METADATA)
    assert story.phase(length_shows_metadata=tells) is phase


# Trims and zeroes over blocks that the pool needs are found; over free space they are not.

TXG = 22
"""Of the records that `log_block` makes."""
AREA = 256 * 1024
LABEL = 4 * AREA
"""Where a disk's first label begins."""
UBERBLOCK_AT = 128 * 1024


@pytest.fixture
def pool(tmp_path: Path) -> Story:
    """A pool with a label whose uberblock is known."""
    pool = Story(folder=tmp_path)
    committed(pool, 5)
    return pool


def committed(pool: Story, txg: int) -> None:
    pool.flush()
    pool.write(uberblock(txg), offset=LABEL + UBERBLOCK_AT + txg * 1024)
    pool.flush()


def taking(pool: Story) -> list[int]:
    return [x.event for x in pool.findings() if x.invariant is Invariant.TRIMMED_IS_FREE]


def test_the_log_must_not_be_trimmed_before_its_group_is_committed(pool: Story) -> None:
    pool.write(log_block((0, 512)), offset=8 * MIB)
    early = [
        pool.trim(offset=8 * MIB + 512, length=512),
        pool.zero(offset=0, length=8 * MIB + 1),
    ]
    committed(pool, TXG - 1)
    early.append(pool.trim(offset=8 * MIB, length=MIB))
    committed(pool, TXG)
    pool.trim(offset=8 * MIB, length=MIB)
    assert taking(pool) == [early[0], early[1], early[2]]


@pytest.mark.parametrize(
    ("offset", "length", "disk"),
    [(7 * MIB, MIB, 0), (8 * MIB + 4096, MIB, 0), (8 * MIB, MIB, 1), (8 * MIB, 0, 0)],
)
def test_a_trim_beside_the_log_is_no_finding(
    pool: Story, offset: int, length: int, disk: int
) -> None:
    pool.write(log_block((0, 512)), offset=8 * MIB)
    pool.trim(offset=offset, length=length, disk=disk)
    assert taking(pool) == []


def test_the_log_of_a_committed_group_and_one_without_records_may_be_trimmed(pool: Story) -> None:
    committed(pool, TXG)
    pool.write(log_block((0, 512)), offset=8 * MIB)
    pool.write(log_block(), offset=9 * MIB)
    pool.trim(offset=8 * MIB, length=2 * MIB)
    assert taking(pool) == []


def test_of_merged_blocks_the_one_that_is_free_first_counts(pool: Story) -> None:
    late = bytearray(log_block((0, 512)))
    struct.pack_into("<Q", late, 184 + 16, TXG + 5)
    pool.write(log_block((0, 512)) + late, offset=8 * MIB)
    committed(pool, TXG)
    pool.trim(offset=8 * MIB, length=2 * MIB)
    assert taking(pool) == []


def test_with_a_split_log_block_no_trim_is_reported(pool: Story) -> None:
    pool.write(log_block((0, 512), is_split=True), offset=8 * MIB)
    pool.trim(offset=8 * MIB, length=MIB)
    assert taking(pool) == []


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
    pool: Story, offset: int, length: int, *, is_taken: bool
) -> None:
    seen = [pool.trim(offset=offset, length=length), pool.zero(offset=offset, length=length)]
    pool.trim(offset=offset, length=length, disk=1)
    assert taking(pool) == (seen if is_taken else [])


def test_a_label_of_a_disk_that_is_no_part_of_the_pool_may_be(tmp_path: Path) -> None:
    pool = Story(folder=tmp_path)
    pool.write(uberblock(0), offset=LABEL + UBERBLOCK_AT)
    pool.write(BLOCK, offset=LABEL)
    pool.trim(offset=LABEL, length=AREA)
    assert taking(pool) == []

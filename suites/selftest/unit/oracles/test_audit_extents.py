"""Blocks of the last transaction groups are kept: each overwrite is found, and nothing else is."""

from __future__ import annotations

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20


def taken(story: Story) -> list[int]:
    """The events that hit kept blocks."""
    return [x.event for x in story.findings() if x.invariant is Invariant.EXTENT_IS_KEPT]


def committed(story: Story, txg: int) -> None:
    story.flush()
    story.write(uberblock(txg))
    story.flush()


@pytest.mark.parametrize("groups_later", [1, 2])
def test_blocks_of_the_last_two_groups_must_not_be_overwritten(
    story: Story, groups_later: int
) -> None:
    story.write(BLOCK, offset=MIB, disk=1)
    for txg in range(groups_later):
        committed(story, txg + 5)
    overwrites = story.write(METADATA, offset=MIB + len(BLOCK) - 512, disk=1)
    committed(story, groups_later + 5)
    assert taken(story) == [overwrites]


def test_groups_count_by_their_numbers_and_empty_ones_write_no_uberblock(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    story.write(BLOCK, offset=2 * MIB)
    committed(story, 5)
    story.write(BLOCK, offset=MIB)
    committed(story, 8)
    second = story.write(BLOCK, offset=MIB)
    story.write(BLOCK, offset=2 * MIB)
    committed(story, 10)
    assert taken(story) == [second]


def test_a_group_without_an_uberblock_is_not_judged(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    committed(story, 5)
    story.write(BLOCK, offset=MIB)
    assert taken(story) == []


@pytest.mark.parametrize("groups_later", [0, 3])
def test_a_group_may_rewrite_its_own_and_older_blocks(story: Story, groups_later: int) -> None:
    story.write(BLOCK, offset=MIB)
    for txg in range(groups_later):
        committed(story, txg + 5)
    story.write(BLOCK, offset=MIB)
    committed(story, groups_later + 5)
    assert taken(story) == []


def test_neighbours_and_other_disks_are_no_finding(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    committed(story, 5)
    story.write(BLOCK, offset=MIB + len(BLOCK))
    story.write(METADATA, offset=MIB - len(METADATA))
    story.write(BLOCK, offset=MIB, disk=1)
    committed(story, 6)
    assert taken(story) == []


def test_a_trim_of_a_kept_block_is_found(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    story.trim(offset=2 * MIB, length=MIB)
    committed(story, 5)
    trim = story.trim(offset=MIB, length=MIB)
    committed(story, 6)
    assert taken(story) == [trim]


def test_the_log_is_freed_at_once_and_may_lie_anywhere(story: Story) -> None:
    story.write(log_block((0, 512)), offset=MIB)
    story.flush()
    committed(story, 5)
    story.write(METADATA, offset=MIB)
    committed(story, 6)
    story.write(log_block((0, 512)), offset=MIB)
    story.flush()
    committed(story, 7)
    story.write(METADATA, offset=MIB)
    committed(story, 8)
    assert taken(story) == []


def test_the_log_may_lie_where_the_group_under_way_wrote_before(story: Story) -> None:
    story.write(METADATA, offset=MIB)
    story.write(log_block((0, 512)), offset=MIB)
    committed(story, 5)
    story.write(METADATA, offset=MIB)
    committed(story, 6)
    assert taken(story) == []


def test_with_split_log_blocks_no_overwrite_is_reported(story: Story) -> None:
    story.write(log_block((0, 512), is_split=True), offset=MIB)
    story.write(BLOCK, offset=2 * MIB, disk=1)
    committed(story, 5)
    story.write(BLOCK, offset=2 * MIB, disk=1)
    committed(story, 6)
    assert taken(story) == []


def test_a_trim_larger_than_all_written_blocks_is_found(story: Story) -> None:
    story.write(BLOCK, offset=3 * MIB)
    committed(story, 5)
    story.trim(offset=4 * MIB, length=64 * MIB)
    story.trim(offset=0, length=3 * MIB)
    story.trim(offset=0, length=64 * MIB, disk=1)
    trim = story.trim(offset=0, length=3 * MIB + 512)
    committed(story, 6)
    assert taken(story) == [trim]
    committed(story, 7)
    story.trim(offset=0, length=64 * MIB)
    committed(story, 8)
    assert taken(story) == [trim]


def test_a_trim_of_blocks_that_the_group_under_way_wrote_is_found(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    trim = story.trim(offset=MIB, length=512)
    committed(story, 5)
    assert taken(story) == [trim]


def test_zeroes_over_a_kept_block_are_found(story: Story) -> None:
    story.write(BLOCK, offset=MIB)
    committed(story, 5)
    zeroes = story.zero(offset=MIB, length=512)
    committed(story, 7)
    assert taken(story) == [zeroes]


@pytest.mark.parametrize(("born", "is_taken"), [(8, True), (6, True), (5, True), (4, False)])
def test_a_trim_of_data_that_the_log_points_to_is_found_before_their_group_ends(
    story: Story, born: int, *, is_taken: bool
) -> None:
    story.write(BLOCK, offset=FIRST_BLOCK)
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=born))))
    trim = story.trim(offset=FIRST_BLOCK, length=512)
    story.flush()
    committed(story, 7)
    assert taken(story) == ([trim] if is_taken else [])

"""The audit sees a log chain that is broken, and an uberblock that was not flushed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from torture.facts.axes.sync import Sync
from torture.facts.recording.intent_log import placed_blocks_in
from torture.oracles.audit.invariants import Finding, Invariant
from vmimages.client.load.blocks import Encoder

TXG = 22
"""Of the records that `log_block` makes."""


def link(number: int, *operations: int, chain: int = 1) -> bytes:
    """A block of the log by its number in a chain, which holds a sector of each of these operations."""
    block = bytearray(log_block((0, 512)))
    struct.pack_into("<QQQQ", block, 104, chain, chain, 81, number + 1)
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return bytes(block) + b"".join(sectors)


def broken(story: Story) -> list[Finding]:
    found = story.findings(sync=Sync.ALWAYS)
    return [one for one in found if one.invariant is Invariant.LOG_CHAIN_IS_WHOLE]


def promised_over_a_gap(story: Story, *, chain: int = 1) -> tuple[int, int]:
    """Block 1 stays in flight, block 2 is covered, and its operation is acknowledged."""
    story.begins(1)
    story.begins(2)
    head = story.submit(link(1, 1))
    story.write(link(2, 2, chain=chain))
    story.flush()
    return head, story.is_done(2)


def test_a_block_behind_one_that_is_missing_is_not_durable(story: Story) -> None:
    head, done = promised_over_a_gap(story)
    assert broken(story) == [
        Finding(invariant=Invariant.LOG_CHAIN_IS_WHOLE, event=done, uncovered=(head,))
    ]


def test_another_chain_does_not_matter(story: Story) -> None:
    promised_over_a_gap(story, chain=2)
    assert broken(story) == []


def test_a_missing_block_after_the_acknowledged_one_does_not_matter(story: Story) -> None:
    story.begins(1)
    story.begins(2)
    story.write(link(1, 1))
    story.submit(link(2, 2))
    story.flush()
    story.is_done(1)
    assert broken(story) == []


@pytest.mark.parametrize(("number", "is_found"), [(1, True), (2, False)])
def test_all_copies_of_an_operations_first_block_must_be_covered_and_no_later_block(
    story: Story, number: int, is_found: bool
) -> None:
    """A mirrored log has a block twice. btrfs writes a small file's data again with other metadata."""
    story.begins(1)
    story.write(link(1, 1), disk=0)
    story.flush(disk=0)
    second = story.write(link(number, 1), disk=1)
    done = story.is_done(1)
    wanted = [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(second,))]
    assert story.findings(sync=Sync.ALWAYS) == (wanted if is_found else [])


def test_blocks_in_one_write_are_counted_one_by_one(story: Story) -> None:
    """A disk merges a copy with the next block, and the other disk does not."""
    story.begins(1)
    story.begins(2)
    story.write(link(1, 1) + link(2, 2), disk=0)
    story.flush(disk=0)
    second = story.write(link(2, 2), disk=1)
    story.is_done(1)
    done = story.is_done(2)
    assert story.findings(sync=Sync.ALWAYS) == [
        Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(second,))
    ]


def test_each_block_in_one_write_has_operations_of_its_own(story: Story) -> None:
    story.begins(1)
    story.begins(2)
    both = story.write(link(1, 1) + link(2, 2), disk=0)
    story.write(link(1, 3, chain=2), disk=1)
    story.flush(disk=1)
    done = story.is_done(2)
    assert story.findings(sync=Sync.ALWAYS) == [
        Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(both,))
    ]


def test_content_before_the_first_block_is_one_without_a_place() -> None:
    """It is a column of a block that was split over disks."""
    column, whole = bytes(512), link(7, 1)
    [(_, before), (place, block)] = placed_blocks_in(column + whole)
    assert (before, block) == (column, whole)
    assert place is not None
    assert place.number == 7
    assert list(placed_blocks_in(column)) == [(None, column)]


@pytest.mark.parametrize(("txg", "is_needed"), [(TXG - 1, True), (TXG, False), (TXG + 1, False)])
def test_committed_records_need_not_be_in_the_log(story: Story, txg: int, is_needed: bool) -> None:
    story.write(BLOCK)
    story.flush()
    story.write(uberblock(txg))
    story.flush()
    promised_over_a_gap(story)
    assert bool(broken(story)) is is_needed


def test_an_uberblock_on_its_way_commits_nothing(story: Story) -> None:
    story.submit(uberblock(TXG))
    promised_over_a_gap(story)
    assert broken(story)


def test_a_block_is_there_as_soon_as_one_leg_of_a_mirror_has_it(story: Story) -> None:
    story.begins(1)
    story.begins(2)
    story.submit(link(1, 1), disk=0)
    story.write(link(1, 1), disk=1)
    story.write(link(2, 2), disk=1)
    story.flush(disk=1)
    story.is_done(2)
    assert broken(story) == []


def over_a_block_never_written(story: Story, *numbers: int, txg: int | None = None) -> int:
    """Blocks of these numbers are covered, and the operation of the last one is acknowledged."""
    if txg is not None:
        story.write(BLOCK)
        story.flush()
        story.write(uberblock(txg))
        story.flush()
    last = 0
    for number in numbers:
        story.begins(number)
        last = story.write(link(number, number))
    story.flush()
    story.is_done(numbers[-1])
    return last


def test_a_block_that_was_never_written_is_missing(story: Story) -> None:
    """A disk that loses a write leaves no trace of it but the gap in its chain."""
    last = over_a_block_never_written(story, 1, 3)
    [finding] = broken(story)
    assert finding.uncovered == (last,)


def test_a_chain_without_a_gap_or_with_one_that_is_committed_is_whole(tmp_path: Path) -> None:
    for name, numbers, txg in (("a", (1, 2, 3), None), ("b", (7, 8), None), ("c", (1, 3), TXG)):
        (tmp_path / name).mkdir()
        story = Story(folder=tmp_path / name)
        over_a_block_never_written(story, *numbers, txg=txg)
        assert broken(story) == []


def late(story: Story) -> list[Finding]:
    found = story.findings(sync=Sync.DISABLED)
    return [one for one in found if one.invariant is Invariant.UBERBLOCK_IS_DURABLE]


def group(story: Story, txg: int, *, is_flushed: bool) -> tuple[int, int]:
    """A transaction group; its first write, and its uberblock."""
    first = story.write(BLOCK)
    story.write(METADATA)
    story.flush()
    ends = story.write(uberblock(txg))
    if is_flushed:
        story.flush()
    return first, ends


def test_an_uberblock_is_flushed_before_the_next_group_writes(story: Story) -> None:
    group(story, 5, is_flushed=True)
    group(story, 6, is_flushed=True)
    assert late(story) == []


def test_an_uberblock_that_was_not_flushed_is_found_at_the_next_groups_first_write(
    story: Story,
) -> None:
    _, ends = group(story, 5, is_flushed=False)
    first, _ = group(story, 6, is_flushed=True)
    group(story, 7, is_flushed=True)
    wanted = Finding(invariant=Invariant.UBERBLOCK_IS_DURABLE, event=first, uncovered=(ends,))
    assert late(story) == [wanted]


def test_a_flush_for_the_log_covers_an_uberblock_as_well(story: Story) -> None:
    group(story, 5, is_flushed=False)
    story.write(link(1, 1))
    story.flush()
    group(story, 6, is_flushed=True)
    assert late(story) == []


def test_an_uberblock_of_a_disk_that_is_added_is_of_no_group(story: Story) -> None:
    group(story, 5, is_flushed=True)
    story.write(uberblock(0), disk=1)
    group(story, 6, is_flushed=True)
    assert late(story) == []

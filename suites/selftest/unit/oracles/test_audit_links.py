"""The audit sees a log chain that is broken, and an uberblock that was not flushed."""

from __future__ import annotations

import struct

import pytest

from suites.selftest.unit.audit_story import Story, log_block
from suites.selftest.unit.oracles.audit_scenes import Accused, Stage
from torture.facts.axes.sync import Sync
from torture.facts.recording.intent_log import placed_blocks_in
from torture.oracles.audit.invariants import Invariant
from vmimages.client.load.blocks import Encoder

TXG = 22
"""Of the records that `log_block` makes."""


def link(number: int, *operations: int, chain: int = 1) -> bytes:
    """A block of the log by its number in a chain, which holds a sector of each of these operations."""
    block = bytearray(log_block((0, 512)))
    struct.pack_into("<QQQQ", block, 104, chain, chain, 81, number + 1)
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return bytes(block) + b"".join(sectors)


LINKS = {
    "1": link(1, 1),
    "2": link(2, 2),
    "3": link(3, 3),
    "7": link(7, 7),
    "8": link(8, 8),
    "1-and-2": link(1, 1) + link(2, 2),
    "2-of-operation-1": link(2, 1),
    "1-of-another-chain": link(1, 3, chain=2),
    "2-of-another-chain": link(2, 2, chain=2),
}
OVER_A_GAP = "begin 1, begin 2, head=submit 1, write 2, flush, done=done 2"
CHAINS = {
    "a block behind one that is missing is not durable": f"{OVER_A_GAP}, accuses done head",
    "another chain does not matter": (
        "begin 1, begin 2, submit 1, write 2-of-another-chain, flush, done 2, accuses"
    ),
    "a missing block after the acknowledged one does not matter": (
        "begin 1, begin 2, write 1, submit 2, flush, done 1, accuses"
    ),
    "records of an older group are needed": (
        f"write data, group {TXG - 1}, {OVER_A_GAP}, accuses done head"
    ),
    "committed records need not be in the log": f"write data, group {TXG}, {OVER_A_GAP}, accuses",
    "nor those of a group before": f"write data, group {TXG + 1}, {OVER_A_GAP}, accuses",
    "an uberblock on its way commits nothing": (
        f"submit uberblock:{TXG}, {OVER_A_GAP}, accuses done head"
    ),
    "a block is there as soon as one leg of a mirror has it": (
        "begin 1, begin 2, submit 1, write 1 on b, write 2 on b, flush b, done 2, accuses"
    ),
    "a block that was never written is missing, and leaves no trace but the gap": (
        "begin 1, write 1, begin 3, last=write 3, flush, done=done 3, accuses done last"
    ),
    "a chain without a gap is whole": (
        "begin 1, write 1, begin 2, write 2, begin 3, write 3, flush, done 3, accuses"
    ),
    "a chain may begin with any number": (
        "begin 7, write 7, begin 8, write 8, flush, done 8, accuses"
    ),
    "a gap that is committed does not matter": (
        f"write data, group {TXG}, begin 1, write 1, begin 3, write 3, flush, done 3, accuses"
    ),
}


def accused_of(invariant: Invariant, *, sync: Sync) -> Accused:
    """By findings of this kind: the event of each, and the writes that it needs."""
    return lambda story: [
        event
        for finding in story.findings(sync=sync)
        if finding.invariant is invariant
        for event in (finding.event, *finding.uncovered)
    ]


@pytest.mark.parametrize("scene", CHAINS.values(), ids=CHAINS)
def test_the_chain_of_the_log_is_whole(scene: str, story: Story) -> None:
    accused = accused_of(Invariant.LOG_CHAIN_IS_WHOLE, sync=Sync.ALWAYS)
    Stage(story, accused=accused, contents=LINKS).play(scene)


COPIES = {
    "all copies of an operation's first block must be covered, as in a mirrored log": (
        "begin 1, write 1, flush, second=write 1 on b, done=done 1, accuses done second"
    ),
    "no later block, as btrfs writes a small file's data again with other metadata": (
        "begin 1, write 1, flush, second=write 2-of-operation-1 on b, done=done 1, accuses"
    ),
    "blocks that a disk merged into one write are counted one by one": (
        "begin 1, begin 2, write 1-and-2, flush, second=write 2 on b, "
        "done 1, done=done 2, accuses done second"
    ),
    "each block in one write has operations of its own": (
        "begin 1, begin 2, both=write 1-and-2, write 1-of-another-chain on b, flush b, "
        "done=done 2, accuses done both"
    ),
}


@pytest.mark.parametrize("scene", COPIES.values(), ids=COPIES)
def test_the_copies_of_an_acknowledged_block_are_covered(scene: str, story: Story) -> None:
    accused = accused_of(Invariant.ACKNOWLEDGED_IS_DURABLE, sync=Sync.ALWAYS)
    Stage(story, accused=accused, contents=LINKS).play(scene)
    wanted = {Invariant.ACKNOWLEDGED_IS_DURABLE}
    assert {finding.invariant for finding in story.findings(sync=Sync.ALWAYS)} <= wanted


def test_content_before_the_first_block_is_one_without_a_place() -> None:
    """It is a column of a block that was split over disks."""
    column, whole = bytes(512), link(7, 1)
    [(_, before), (place, block)] = placed_blocks_in(column + whole)
    assert (before, block) == (column, whole)
    assert place is not None
    assert place.number == 7
    assert list(placed_blocks_in(column)) == [(None, column)]


GROUP = "write data, write metadata"
UBERBLOCKS = {
    "an uberblock is flushed before the next group writes": (
        f"{GROUP}, group 5, {GROUP}, group 6, accuses"
    ),
    "an uberblock that was not flushed is found at the next group's first write": (
        f"{GROUP}, flush, ends=write uberblock:5, first=write data, write metadata, group 6, "
        f"{GROUP}, group 7, accuses first ends"
    ),
    "a flush for the log covers an uberblock as well": (
        f"{GROUP}, flush, write uberblock:5, write 1, flush, {GROUP}, group 6, accuses"
    ),
    "an uberblock of a disk that is added is of no group": (
        f"{GROUP}, group 5, write uberblock:0 on b, {GROUP}, group 6, accuses"
    ),
}


@pytest.mark.parametrize("scene", UBERBLOCKS.values(), ids=UBERBLOCKS)
def test_an_uberblock_is_durable_before_the_next_group(scene: str, story: Story) -> None:
    accused = accused_of(Invariant.UBERBLOCK_IS_DURABLE, sync=Sync.DISABLED)
    Stage(story, accused=accused, contents=LINKS).play(scene)

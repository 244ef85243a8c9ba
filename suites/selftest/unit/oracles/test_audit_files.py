"""An answer of an NFS or SMB server is a promise: its data, its due time, and each gap.

The audit sees a log chain that is broken, and an uberblock that was not flushed.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from suites.selftest.unit.audit_story import (
    Story,
    log_block,
    log_of,
    logged,
    logged_name,
)
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs, accused_of
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import FileKind, FileRequest, whole_sectors_of
from torture.facts.recording.intent_log import placed_blocks_in
from torture.oracles.audit.durable import due_of_files
from torture.oracles.audit.invariants import Invariant
from vmimages.client.load.blocks import Encoder

WRITE, COMMIT, NAME, RESIZE = FileKind.WRITE, FileKind.COMMIT, FileKind.NAME, FileKind.RESIZE
FILE, OTHER = "aa", "bb"
OFFSET = 8192


def block_of(operation: int) -> bytes:
    return Encoder(7).block(file=1, seq=operation, index=2)


def write_of(story: Story, operation: int, *, is_forced: bool = False) -> FileRequest:
    content = block_of(operation)
    return story.server_takes(
        WRITE,
        file=FILE,
        offset_bytes=OFFSET,
        length_bytes=len(content),
        is_forced=is_forced,
        sectors=whole_sectors_of(content, offset_bytes=OFFSET),
    )


SPLIT, LATER_SPLIT = 512 + 16, 7 * 512 + 24
"""The log splits a write at any eight bytes: even the header of a sector may be in two blocks."""
LOGS = {
    "log": log_of(logged(OFFSET, block_of(3))),
    "log-of-newer": log_of(logged(OFFSET, block_of(4))),
    "log-of-another": log_of(logged(OFFSET, block_of(9))),
    "head": log_of(logged(OFFSET, block_of(3)[:SPLIT])),
    "tail": log_of(logged(OFFSET + SPLIT, block_of(3)[SPLIT:])),
    "long-head": log_of(logged(OFFSET, block_of(3)[:LATER_SPLIT])),
    "short-tail": log_of(logged(OFFSET + LATER_SPLIT, block_of(3)[LATER_SPLIT:])),
}
DUE = {
    "a stable write is due at its answer": (
        "write=take 3 forced, write log, answer write, flush, accuses 8K"
    ),
    "an unstable write is due at the answer to its commit": (
        "write=take 3, answer write, commit=commit, write log, answer commit, flush, accuses 8K"
    ),
    "its log is flushed by then": (
        "write=take 3, answer write, commit=commit, write log, flush, answer commit, flush, accuses"
    ),
    "a log of another file at the same place does not count": (
        "write=take 3 forced, write log-of-another, flush, write log, answer write, flush, accuses 8K"
    ),
    "a write that was overwritten before it was logged is held by its place": (
        "older=take 3, newer=take 4, answer older, answer newer, commit=commit, "
        "write log-of-newer, flush, answer commit, accuses"
    ),
    "a sector that two log blocks share is held by both": (
        "write=take 3 forced, write head, write tail, flush, answer write, accuses"
    ),
    "a group that was being written vouches for nothing that came later": (
        "write metadata, group 20, write metadata, write=take 3 forced, group 21, "
        "answer write, accuses 8K"
    ),
    "a group vouches for writes before its first one": (
        "write metadata, group 20, write=take 3 forced, write metadata, group 21, "
        "answer write, accuses"
    ),
    "a sector in two blocks is not taken for its later copy, which a client sent once more": (
        "write=take 3 forced, write long-head, write short-tail, flush, answer write, "
        "write log, accuses"
    ),
    "a write that was only logged later is found": (
        "write=take 3 forced, write log-of-another, flush, answer write, "
        "write log, flush, accuses 8K"
    ),
}


@pytest.mark.parametrize("scene", DUE.values(), ids=DUE)
def test_a_write_is_durable_when_it_is_due(scene: str, story: Story) -> None:
    def lost(story: Story) -> list[int]:
        count, places = story.uncovered(sync=Sync.STANDARD)
        assert count == scene.count("take")
        return [place for place in places if place is not None]

    verbs: Verbs = {
        "take": lambda number, *how: write_of(story, int(number), is_forced="forced" in how),
        "commit": lambda: story.server_takes(COMMIT, file=FILE),
    }
    Stage(story, accused=lost, contents=LOGS, verbs=verbs).play(scene)


def test_with_always_every_write_is_due_at_its_answer(story: Story) -> None:
    write = write_of(story, 3)
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [OFFSET])


RENAME, MADE = ("f1.tmp", "f1"), ("f1",)


@pytest.mark.parametrize(
    ("names", "logged_names", "is_flushed", "lost"),
    [
        *((RENAME, names, True, [None]) for names in (("f1.tmp",), MADE, (), ("xf1", "f1.tmpx"))),
        (RENAME, RENAME, True, []),
        (MADE, MADE, False, [None]),
    ],
)
def test_a_rename_is_due_at_its_answer_with_both_of_its_names_logged_and_flushed(
    story: Story,
    names: tuple[str, ...],
    logged_names: tuple[str, ...],
    is_flushed: bool,
    lost: list[None],
) -> None:
    change = story.server_takes(NAME, names=names)
    story.write(log_of(logged_name(*logged_names)))
    if is_flushed:
        story.flush()
    story.completes(change)
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, lost)


def request(kind: FileKind, at_ns: int, **fields: object) -> FileRequest:
    known = FileRequest(
        kind=kind, submitted_ns=at_ns, completed_ns=at_ns + 1, file=FILE, verifier="1"
    )
    return replace(known, **fields)  # type: ignore[arg-type]


UNSTABLE = request(WRITE, 10, offset_bytes=4096, length_bytes=4096)


@pytest.mark.parametrize(
    "commit",
    [
        request(COMMIT, 20, file=OTHER),
        request(COMMIT, 20, verifier="2"),
        request(COMMIT, 20, offset_bytes=8192),
        request(COMMIT, 20, offset_bytes=0, length_bytes=4096),
        request(COMMIT, 10, completed_ns=30),
    ],
    ids=["other-file", "other-life", "behind", "before", "asked-before-the-write-was-answered"],
)
def test_a_commit_of_something_else_makes_nothing_due(commit: FileRequest) -> None:
    assert list(due_of_files([UNSTABLE, commit], sync=Sync.STANDARD, names_are_stable=True)) == []


def test_a_write_is_due_once_and_not_after_its_file_was_cut_short() -> None:
    whole, part = request(COMMIT, 20), request(COMMIT, 30, offset_bytes=4096, length_bytes=4096)
    [due] = due_of_files([UNSTABLE, part, whole], sync=Sync.STANDARD, names_are_stable=True)
    assert (due.submitted_ns, due.due_ns) == (10, 31)
    cut_short = [UNSTABLE, request(RESIZE, 15), whole]
    assert list(due_of_files(cut_short, sync=Sync.STANDARD, names_are_stable=True)) == []


def test_with_sync_disabled_nothing_is_due() -> None:
    requests = [UNSTABLE, request(COMMIT, 20), request(NAME, 30, names=("f1",))]
    assert list(due_of_files(requests, sync=Sync.DISABLED, names_are_stable=True)) == []
    [_] = due_of_files(requests, sync=Sync.STANDARD, names_are_stable=False)


def test_a_file_request_from_before_the_recording_is_not_due_in_it() -> None:
    early = [replace(UNSTABLE, submitted_ns=-5, is_forced=True), request(NAME, -3, names=("f1",))]
    assert list(due_of_files(early, sync=Sync.STANDARD, names_are_stable=True)) == []


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


@pytest.mark.parametrize("scene", CHAINS.values(), ids=CHAINS)
def test_the_chain_of_the_log_is_whole(scene: str, story: Story) -> None:
    accused = accused_of(Invariant.LOG_CHAIN_IS_WHOLE, sync=Sync.ALWAYS, has_others=True)
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
    accused = accused_of(Invariant.UBERBLOCK_IS_DURABLE, sync=Sync.DISABLED, has_others=True)
    Stage(story, accused=accused, contents=LINKS).play(scene)

"""Completed requests are durable, in the intent log or in a committed group; each gap is found."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import Story, log_block, uberblock
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import BlockKind, BlockRequest
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import ChainPlace, log_blocks_in
from torture.oracles.audit.due.completions import Completions

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "zil-block.json"
MIB = 1 << 20


def real_block() -> bytes:
    return zlib.decompress(base64.b64decode(json.loads(RECORDED.read_text())["zlib"]))


def test_a_real_block_of_the_log_has_each_write_and_its_place() -> None:
    writes = ((39157760, 32768), (72712192, 32768))
    [block] = log_blocks_in(real_block())
    assert (block.writes, block.is_whole) == (writes, True)
    chain = (1410935861823040948, 11638278967229178825, 81)
    assert block.place == ChainPlace(chain=chain, number=42)
    assert block.txg == 25


def test_blocks_of_the_log_are_found_behind_others() -> None:
    first, second = log_block((0, 512)), log_block((MIB, 4096))
    found = list(log_blocks_in(bytes(8192) + first + second))
    assert [block.writes for block in found] == [((0, 512),), ((MIB, 4096),)]


def test_a_split_block_ends_where_the_next_one_begins_on_its_disk() -> None:
    """Its second half is on another disk; two columns were merged, and its header states both halves."""
    full, second = 4096 - 184 - 192, bytearray(log_block((MIB, 4096)))
    struct.pack_into(
        "<Q", second, 8, 8192
    )  # of the next block's address: a record's length by chance
    found = list(log_blocks_in(log_block((0, full), is_split=True) + second + bytes(4096)))
    assert [block.writes for block in found] == [((0, full),), ((MIB, 4096),)]
    assert [block.is_whole for block in found] == [False, True]


@given(st.integers(0, 70_000))
def test_a_block_of_which_only_a_part_is_there_says_so(length: int) -> None:
    [whole] = log_blocks_in(real_block())
    for block in log_blocks_in(real_block()[:length]):
        assert block.writes == whole.writes[: len(block.writes)]
        assert block.is_whole == (length >= 184 + 2 * (192 + 32768))


@given(st.binary(max_size=400), st.integers(0, 500))
def test_a_garbled_block_is_no_error(garbage: bytes, place: int) -> None:
    block = bytearray(log_block((0, 512), (MIB, 512)))
    block[place : place + len(garbage)] = garbage
    for found in log_blocks_in(bytes(block)):
        assert isinstance(found.is_whole, bool)


def test_a_record_that_is_another_columns_data_ends_the_known_part_of_a_block() -> None:
    block = bytearray(log_block((0, 512), (MIB, 512)))
    second = 184 + 192 + 512
    struct.pack_into("<Q", block, second + 48, 1 << 60)  # its length
    [found] = log_blocks_in(bytes(block))
    assert (found.writes, found.is_whole) == (((0, 512),), False)


def test_other_records_and_chance_are_no_writes() -> None:
    block = bytearray(log_block((0, 512)))
    block[184] = 10  # TX_TRUNCATE
    [found] = log_blocks_in(bytes(block))
    assert (found.writes, found.is_whole, found.place) == ((), True, None)
    assert list(log_blocks_in(bytes(7) + log_block((0, 512)))) == []


def test_a_write_logged_and_flushed_before_its_completion_is_durable(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((MIB, 4096)))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [])


def test_a_log_that_was_not_flushed_is_found(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((MIB, 4096)))
    story.completes(write)
    story.flush()
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [MIB])
    assert [story.events[event].kind for event in story.accused] == [Kind.WRITE_COMPLETE]


def test_a_log_that_was_flushed_within_the_error_of_the_clocks_is_not(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((MIB, 4096)))
    story.completes(write)
    story.flush()
    assert story.uncovered(sync=Sync.ALWAYS, error_ns=10) == (1, [])


def test_a_log_that_was_written_within_the_error_of_the_clocks_counts(story: Story) -> None:
    story.write(log_block((MIB, 4096)))
    write = story.client_writes(MIB)
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS, error_ns=10) == (1, [])


def test_a_forced_write_is_durable_without_a_flush(story: Story) -> None:
    write = replace(story.client_writes(MIB), is_forced=True)
    story.write(log_block((MIB, 4096)))
    story.flush()
    story.completes(write)
    late = replace(story.client_writes(2 * MIB), is_forced=True)
    story.write(log_block((2 * MIB, 4096)))
    story.completes(late)
    story.flush()
    flush = story.client_flushes()
    story.completes(flush)
    assert story.uncovered(sync=Sync.STANDARD) == (2, [2 * MIB])
    assert story.uncovered(sync=Sync.DISABLED) == (0, [])


def test_a_flush_promises_nothing_more_where_each_write_does(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((MIB, 4096)))
    story.flush()
    story.completes(write)
    flush = story.client_flushes()
    story.completes(flush)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [])


def test_a_completion_after_the_cut_promises_nothing(story: Story) -> None:
    write = story.client_writes(MIB)
    story.flush()
    story.now_ns += 100
    story.completes(write)
    story.now_ns -= 100
    assert story.uncovered(sync=Sync.ALWAYS) == (0, [])


@pytest.mark.parametrize("sync", [Sync.ALWAYS, Sync.STANDARD])
def test_a_request_from_before_the_recording_is_not_due_in_it(sync: Sync) -> None:
    begun_ns = (-5, 0)
    writes = [
        BlockRequest(kind=BlockKind.WRITE, submitted_ns=at, completed_ns=3, length_bytes=512)
        for at in begun_ns
    ]
    flush = BlockRequest(kind=BlockKind.FLUSH, submitted_ns=4, completed_ns=6)
    completions = Completions(requests=(*writes, flush), error_ns=0)
    assert [each.submitted_ns for each in completions.due(sync=sync, cut_ns=7)] == [0]


def test_a_log_of_another_place_or_of_a_part_of_it_does_not_count(story: Story) -> None:
    write = story.client_writes(MIB, 8192)
    story.write(log_block((MIB, 4096)))
    story.write(log_block((2 * MIB, 8192)))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [MIB])


def test_a_write_may_be_logged_in_parts(story: Story) -> None:
    write = story.client_writes(MIB, 8192)
    story.write(log_block((MIB, 4096)))
    story.write(log_block((MIB + 4096, 4096)))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [])


def test_a_log_of_an_earlier_write_does_not_count(story: Story) -> None:
    story.write(log_block((MIB, 4096)))
    story.flush()
    write = story.client_writes(MIB)
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [MIB])


def test_a_committed_write_needs_no_log_block(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(uberblock(7))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [])


def test_an_uberblock_that_no_flush_covers_commits_nothing(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(uberblock(7))
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [MIB])


def test_a_block_that_is_split_over_disks_may_hold_anything(story: Story) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((2 * MIB, 4096), is_split=True))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [])


def test_with_standard_only_a_flush_promises_and_only_writes_completed_before_it(
    story: Story,
) -> None:
    before, beside = story.client_writes(MIB), story.client_writes(2 * MIB)
    story.flush()
    story.completes(before)
    story.flush()
    flush = story.client_flushes()
    story.completes(beside)
    story.completes(flush)
    after = story.client_writes(3 * MIB)
    story.completes(after)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [MIB])
    assert story.uncovered(sync=Sync.DISABLED) == (0, [])


def test_a_promise_is_kept_when_the_flush_ends_though_not_before(story: Story) -> None:
    write = story.client_writes(MIB)
    story.completes(write)
    flush = story.client_flushes()
    story.write(log_block((MIB, 4096)))
    story.flush()
    story.completes(flush)
    later = story.client_flushes()
    story.completes(later)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [])

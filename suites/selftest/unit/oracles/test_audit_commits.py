"""The audit: a NAS that does not commit, the time a cut may roll back, and the blocks of an operation.

Completed requests are durable, in the intent log or in a committed group; each gap is found.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock, zil_block
from suites.selftest.unit.oracles.audit_scenes import Accused, Stage
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import BlockKind, BlockRequest, load_sectors_in
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import ChainPlace, log_blocks_in
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.durable import Completions
from torture.oracles.audit.invariants import Finding, Invariant
from vmimages.client.load.blocks import Encoder


def test_a_nas_that_never_commits_is_detected_by_its_acknowledgements(story: Story) -> None:
    story.write(BLOCK)
    for number in range(1, 20):
        last = story.acknowledges(number, later_ms=500)
    late = [find for find in story.findings() if find.invariant is Invariant.TXG_IS_IN_TIME]
    assert len(late) == 1, "said once, not at every acknowledgement"
    assert late[0].event <= last


@pytest.mark.parametrize(("late_ms", "is_late"), [(8_000, True), (9_000, True), (63_000, False)])
def test_a_nas_that_is_set_to_wait_is_late_later(story: Story, late_ms: int, is_late: bool) -> None:
    story.write(BLOCK)
    for number in range(1, 21):
        story.acknowledges(number, later_ms=500)
    assert bool(story.findings_of_groups(late_ms=late_ms)) is is_late


def test_one_that_commits_every_five_seconds_is_in_time(story: Story) -> None:
    for number in range(1, 40):
        story.acknowledges(number, later_ms=500)
        if number % 10 == 0:
            story.write(METADATA)
            story.flush()
            story.write(uberblock(number))
    assert story.findings() == []


@pytest.mark.parametrize(("acknowledgements", "is_late"), [(50, False), (70, True)])
def test_a_group_that_is_being_written_holds_up_the_next_one_for_a_while(
    story: Story, acknowledgements: int, is_late: bool
) -> None:
    """ZFS writes one group at a time, and a slow host gives it little of a processor."""
    story.write(METADATA)
    for number in range(1, acknowledgements):
        story.acknowledges(number, later_ms=500)
    assert bool(story.findings()) is is_late


def test_a_group_that_was_written_holds_up_no_other(story: Story) -> None:
    story.write(METADATA)
    story.flush()
    story.write(uberblock(1))
    for number in range(1, 21):
        story.acknowledges(number, later_ms=500)
    assert [one.invariant for one in story.findings()] == [Invariant.TXG_IS_IN_TIME]


def test_a_pause_of_the_nas_is_no_delay(story: Story) -> None:
    """A NAS that was stopped for a minute had no client to acknowledge operations to."""
    for number in (1, 2, 3):
        story.acknowledges(number, later_ms=60_000)
    assert story.findings() == []


def test_uncommitted_time_counts_from_the_begin_of_the_last_committed_txg(
    story: Story,
) -> None:
    assert story.uncommitted_ms() is None
    story.write(BLOCK, later_ms=1_000)
    story.flush()
    story.write(uberblock(5), later_ms=100)
    assert story.uncommitted_ms() is None, "its uberblock is not covered"
    story.flush()
    assert story.uncommitted_ms() == 100
    story.write(BLOCK, later_ms=2_000)
    story.write(uberblock(6), later_ms=50)
    assert story.uncommitted_ms() == 2_150
    story.write(uberblock(6), disk=1, later_ms=400)
    story.flush(disk=1)
    assert story.uncommitted_ms() == 450, "a copy is of the same transaction group"


def logged(*operations: int) -> bytes:
    """A block of the intent log that holds a sector of each of these operations."""
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return zil_block() + b"".join(sectors)


def test_the_blocks_that_hold_an_acknowledged_operation_must_be_covered(
    story: Story,
) -> None:
    """Another operation's block, covered in the meantime, is no proof."""
    story.begins(1)
    story.begins(2)
    own = story.write(logged(1), disk=0)
    story.write(logged(2), disk=1)
    story.flush(disk=1)
    done = story.is_done(1)
    story.is_done(2)
    wanted = [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,))]
    assert story.findings(sync=Sync.ALWAYS) == wanted
    assert story.findings(sync=Sync.STANDARD) == wanted
    assert story.findings(sync=Sync.DISABLED) == []


@pytest.mark.parametrize(
    ("syncs", "is_owed"), [([], False), ([["fsync", 7]], False), ([["fsync", 12]], True)]
)
def test_acknowledging_a_name_that_needs_no_sync_guarantees_no_data(
    story: Story, syncs: list[list[object]], is_owed: bool
) -> None:
    """Over NFS; another writer's call may have it in the log and on its way by then."""
    story.begins(1, "transaction", do="create", whom=12, syncs=syncs, names_are_stable=True)
    story.write(zil_block())
    story.flush()
    own = story.write(logged(1))
    done = story.is_done(1)
    wanted = [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,))]
    assert story.findings() == (wanted if is_owed else [])
    story.begins(2, "transaction", do="mkdir", whom=14, syncs=[], names_are_stable=True)
    unlogged = story.is_done(2)
    assert unlogged in [finding.event for finding in story.findings()]


@pytest.mark.parametrize("kind", ["create", "replace", "append", "overwrite", "dsync"])
def test_with_volatile_names_data_are_guaranteed_all_the_same(story: Story, kind: str) -> None:
    """As over SMB: what is in a file is flushed, its name is not."""
    story.begins(1, kind)
    own = story.write(logged(1))
    done = story.is_done(1)
    story.begins(2, kind)
    story.write(logged(2))
    story.flush()
    story.is_done(2)
    story.begins(3, kind)
    unlogged = story.is_done(3)
    assert story.findings_of_data() == story.findings()
    assert [(found.event, found.uncovered) for found in story.findings_of_data()] == [
        (done, (own,)),
        (unlogged, ()),
    ]


def test_with_volatile_names_a_name_alone_is_not_guaranteed(story: Story) -> None:
    story.begins(1, "unlink")
    removed = story.is_done(1)
    assert [found.event for found in story.findings()] == [removed]
    assert story.findings_of_data() == []


def test_logging_an_operation_again_after_its_acknowledgement_is_no_finding(story: Story) -> None:
    story.begins(1)
    story.write(logged(1))
    story.flush()
    story.is_done(1)
    story.write(logged(1))
    assert story.findings(sync=Sync.ALWAYS) == []


def test_without_classified_content_only_the_marks_count(story: Story) -> None:
    story.begins(1)
    story.write(zil_block())
    story.is_done(1)
    story.begins(2)
    whole = audit(story.recorded(), cut=len(story.events) - 1, terms=AuditTerms(sync=Sync.ALWAYS))
    assert (len(whole.findings), whole.acknowledgements) == (1, 1)
    assert whole.phase is not None
    marks = whole.marks_only()
    assert (marks.findings, marks.acknowledgements, marks.txgs) == ((), 0, 0)
    assert (marks.phase, marks.completions, marks.uncommitted_ms) == (None, None, None)
    assert (marks.under_way, marks.at_risk and marks.at_risk.lately) == (1, 1)


def test_where_data_is_written_twice_a_missing_flush_is_still_one(story: Story) -> None:
    story.begins(1)
    own = story.write(logged(1))
    done = story.is_done(1)
    terms = AuditTerms(sync=Sync.ALWAYS, writes_once=False)
    found = audit(story.recorded(), cut=done, terms=terms).findings
    assert found == (
        Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,)),
    )


def test_the_guests_blocks_are_known_by_their_headers() -> None:
    """The guest's load is a separate program: its headers are compared with ours."""

    def operations_in(payload: bytes) -> set[int]:
        return {operation for _, (operation, _, _) in load_sectors_in(payload)}

    written = Encoder(7).block(file=1, seq=3, index=0)
    assert operations_in(bytes(100) + written) == {3}
    assert operations_in(written + Encoder(7).block(file=2, seq=5, index=1)) == {3, 5}
    assert operations_in(written[:20]) == set()
    assert operations_in(bytes(4096)) == set()


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


LOGS = {
    "log": log_block((MIB, 4096)),
    "rest-of-log": log_block((MIB + 4096, 4096)),
    "log-of-another": log_block((2 * MIB, 4096)),
    "long-log-of-another": log_block((2 * MIB, 8192)),
    "split-log": log_block((2 * MIB, 4096), is_split=True),
}
WITH_ALWAYS = {
    "a write logged and flushed before its completion is durable": (
        "write=ask 1, write log, flush, answer write, accuses"
    ),
    "a flush promises nothing more where each write does": (
        "write=ask 1, write log, flush, answer write, flush=ask flush, answer flush, accuses"
    ),
    "a log of another place or of a part of it does not count": (
        "write=ask 1 double, write log, write long-log-of-another, flush, answer write, accuses 1"
    ),
    "a write may be logged in parts": (
        "write=ask 1 double, write log, write rest-of-log, flush, answer write, accuses"
    ),
    "a log of an earlier write does not count": (
        "write log, flush, write=ask 1, answer write, accuses 1"
    ),
    "a committed write needs no log block": (
        "write=ask 1, write uberblock:7, flush, answer write, accuses"
    ),
    "an uberblock that no flush covers commits nothing": (
        "write=ask 1, write uberblock:7, answer write, accuses 1"
    ),
    "a block that is split over disks may hold anything": (
        "write=ask 1, write split-log, flush, answer write, accuses"
    ),
}


def lost_of(sync: Sync, *, due: int, error_ns: int = 0) -> Accused:
    """The places that the client wrote in vain, if so many writes were due."""

    def lost(story: Story) -> list[int]:
        count, places = story.uncovered(sync=sync, error_ns=error_ns)
        assert count == due
        return [place for place in places if place is not None]

    return lost


@pytest.mark.parametrize("scene", WITH_ALWAYS.values(), ids=WITH_ALWAYS)
def test_with_always_a_completed_write_is_durable(scene: str, story: Story) -> None:
    Stage(story, accused=lost_of(Sync.ALWAYS, due=1), contents=LOGS).play(scene)


def test_a_log_that_was_not_flushed_is_found(story: Story) -> None:
    Stage(story, accused=lost_of(Sync.ALWAYS, due=1), contents=LOGS).play(
        "write=ask 1, write log, answer write, flush, accuses 1"
    )
    assert [story.events[event].kind for event in story.accused] == [Kind.WRITE_COMPLETE]


@pytest.mark.parametrize(
    "scene",
    [
        "write=ask 1, write log, answer write, flush, accuses",
        "write log, write=ask 1, flush, answer write, accuses",
    ],
)
def test_a_log_within_the_error_of_the_clocks_counts(scene: str, story: Story) -> None:
    Stage(story, accused=lost_of(Sync.ALWAYS, due=1, error_ns=10), contents=LOGS).play(scene)


WITH_STANDARD = {
    "a forced write is durable without a flush": (
        "write=ask 1 forced, write log, flush, answer write, late=ask 2 forced, "
        "write log-of-another, answer late, flush, flush=ask flush, answer flush, accuses 2"
    ),
    "only a flush promises and only writes completed before it": (
        "before=ask 1, beside=ask 2, flush, answer before, flush, flush=ask flush, "
        "answer beside, answer flush, after=ask 3, answer after, accuses 1"
    ),
    "a promise is kept when the flush ends though not before": (
        "write=ask 1, answer write, flush=ask flush, write log, flush, answer flush, "
        "later=ask flush, answer later, accuses"
    ),
}


@pytest.mark.parametrize("scene", WITH_STANDARD.values(), ids=WITH_STANDARD)
def test_with_standard_a_flushed_or_forced_write_is_durable(scene: str, story: Story) -> None:
    due = 2 if "forced" in scene else 1
    Stage(story, accused=lost_of(Sync.STANDARD, due=due), contents=LOGS).play(scene)
    assert story.uncovered(sync=Sync.DISABLED) == (0, [])


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

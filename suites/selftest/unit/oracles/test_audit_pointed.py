"""Data that the intent log points to, and data of a transaction group: each has its own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import (
    BLOCK,
    METADATA,
    Story,
    log_block,
    log_with,
    uberblock,
    zil_block,
)
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.evidence.phase import Phase
from torture.oracles.audit.disk_writes import disk_writes_in
from torture.oracles.audit.invariants import Invariant
from torture.oracles.audit.pointed_data import Pointed, find_pointed
from vmimages.client.load.blocks import Encoder

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "pointing-zil-block.json"
MIB = 1 << 20
PLACE, OTHER = FIRST_BLOCK + 4 * MIB, FIRST_BLOCK + 6 * MIB
ENOUGH = 8
"""So many log blocks later, data without a pointer are a transaction group's own."""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path)
    story.write(uberblock(20), offset=0)
    story.flush()
    return story


def data_of(*operations: int) -> bytes:
    """A block of the volume with a sector of each of these operations."""
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return b"".join(sectors).ljust(BLOCK_BYTES, b"\0")


def write_log(story: Story, *records: tuple[int, bytes]) -> int:
    return story.write(pointing(*records), offset=MIB)


def write_enough_log(story: Story) -> None:
    for _ in range(ENOUGH):
        story.write(zil_block(), offset=2 * MIB)


def found(story: Story, sync: Sync = Sync.ALWAYS) -> list[tuple[Invariant, tuple[int, ...]]]:
    return [(finding.invariant, finding.uncovered) for finding in story.findings(sync=sync)]


def pointed_in(story: Story) -> Pointed:
    recording = story.recorded()
    cut = len(recording.events) - 1
    writes = disk_writes_in(recording, cut=cut, is_split=not story.whole_on)
    return find_pointed(recording, writes, whole_on=story.whole_on)


@pytest.mark.parametrize("is_log_first", [False, True])
def test_an_uberblock_waits_for_no_data_of_a_later_group(story: Story, is_log_first: bool) -> None:
    """The log and what it points to are on their way at once: either may be the first."""
    if is_log_first:
        write_log(story, (0, pointer(PLACE, txg=22)))
    story.write(BLOCK, offset=PLACE)
    story.write(uberblock(21), offset=0)
    if not is_log_first:
        write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    write_enough_log(story)
    assert found(story) == []


def test_an_uberblock_waits_for_the_data_of_its_own_group(story: Story) -> None:
    data = story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=21)))
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (data,))]


def test_data_that_nothing_points_to_are_a_groups_own(story: Story) -> None:
    own = story.write(BLOCK, offset=OTHER)
    data = story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.write(uberblock(21), offset=0)
    assert found(story) == [], "the log may be going to point to it"
    write_enough_log(story)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]
    assert pointed_in(story).born_in == {data: 22}


def test_where_the_log_points_to_nothing_all_data_are_a_groups_own(story: Story) -> None:
    own = story.write(BLOCK, offset=PLACE)
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]


def test_an_older_write_of_a_reused_place_is_a_groups_own(story: Story) -> None:
    own = story.write(BLOCK, offset=PLACE)
    story.write(uberblock(21), offset=0)
    write_enough_log(story)
    story.flush()
    story.write(METADATA, offset=OTHER)
    story.flush()
    story.write(uberblock(25), offset=1024)
    story.flush()
    data = story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=28)))
    assert pointed_in(story).born_in == {data: 28}
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]


def test_data_that_were_not_written_again_are_not_those_of_an_older_group(story: Story) -> None:
    story.write(BLOCK, offset=PLACE)
    story.flush()
    story.write(uberblock(21), offset=0)
    story.flush()
    log = write_log(story, (0, pointer(PLACE, txg=24)))
    [data] = pointed_in(story).by_log[log]
    assert data.submissions == frozenset()


def test_an_operation_is_acknowledged_when_log_and_data_are_covered(story: Story) -> None:
    story.begins(1)
    story.write(data_of(1), offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.is_done(1)
    assert found(story) == []


def test_an_operation_with_uncovered_data_is_found(story: Story) -> None:
    story.begins(1)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    data = story.write(data_of(1), offset=PLACE)
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (data,))]
    assert found(story, Sync.DISABLED) == []


def test_an_operation_whose_data_come_after_its_acknowledgement_is_found(story: Story) -> None:
    story.begins(1)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.is_done(1)
    data = story.write(data_of(1), offset=PLACE)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (data,))]


def test_an_operation_with_an_uncovered_log_block_is_found(story: Story) -> None:
    story.begins(1)
    story.write(data_of(1), offset=PLACE)
    story.flush()
    log = write_log(story, (0, pointer(PLACE, txg=22)))
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (log,))]


@pytest.mark.parametrize("is_in_log", [False, True])
def test_an_older_copy_of_a_block_is_enough_for_its_content(story: Story, is_in_log: bool) -> None:
    """A later operation has the same block of the volume written again, to another place.

    The older copy is another version of the block, or the log holds the small write itself.
    """
    story.begins(1)
    if is_in_log:
        story.write(log_with((0, data_of(1)[:512])), offset=MIB)
    else:
        story.write(data_of(1), offset=PLACE)
        write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.begins(2)
    data = story.write(data_of(1, 2), offset=OTHER)
    log = write_log(story, (0, pointer(OTHER, txg=22)))
    story.is_done(1)
    assert found(story) == []
    story.is_done(2)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (data, log))]


def test_the_logs_own_copy_of_one_sector_says_nothing_of_the_others(story: Story) -> None:
    story.begins(1)
    story.write(log_with((0, data_of(1)[:512])), offset=MIB)
    story.flush()
    second = Encoder(7).block(file=1, seq=1, index=1)[:512]
    data = story.write(data_of(1)[:512] + second.ljust(BLOCK_BYTES - 512, b"\0"), offset=OTHER)
    log = write_log(story, (0, pointer(OTHER, txg=22)))
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (data, log))]


def test_data_and_log_that_are_one_write_are_both(story: Story) -> None:
    """Adjacent writes are merged on their way to the disk; the first bytes identify neither then."""
    story.begins(1)
    log = pointing((0, pointer(PLACE, txg=22)))
    merged = story.write(data_of(1) + log, offset=PLACE)
    story.write(uberblock(21), offset=0)
    assert found(story) == []
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (merged,))]


def test_a_log_that_was_merged_behind_data_is_one(story: Story) -> None:
    story.write(data_of(0) + pointing((0, pointer(PLACE, txg=22))), offset=PLACE)
    story.begins(1)
    story.write(BLOCK + log_block((0, 512)), offset=OTHER)
    story.flush()
    story.is_done(1)
    assert found(story) == []


@pytest.mark.parametrize("uncovered", ["", "data", "log"])
def test_a_completed_write_is_durable_once_log_and_data_are_covered(
    story: Story, uncovered: str
) -> None:
    """Wherever in its block it is."""
    write = story.client_writes(3 * BLOCK_BYTES + 8192)
    if uncovered == "data":
        write_log(story, (3 * BLOCK_BYTES, pointer(PLACE, txg=22)))
        story.flush()
    story.write(BLOCK, offset=PLACE)
    if uncovered == "log":
        story.flush()
    if uncovered != "data":
        write_log(story, (3 * BLOCK_BYTES, pointer(PLACE, txg=22)))
    if not uncovered:
        story.flush()
    story.completes(write)
    expected = [3 * BLOCK_BYTES + 8192] if uncovered else []
    assert story.uncovered(sync=Sync.ALWAYS) == (1, expected)


def test_a_write_after_the_datas_submission_is_not_in_it(story: Story) -> None:
    story.write(BLOCK, offset=PLACE)
    write = story.client_writes(0)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [0])


def test_data_on_their_way_for_the_log_are_the_logs_phase(story: Story) -> None:
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.write(BLOCK, offset=PLACE)
    assert story.phase() is Phase.ZIL_WRITTEN
    story.write(BLOCK, offset=OTHER)
    assert story.phase() is Phase.TXG_WRITTEN


def test_data_for_the_log_begin_no_transaction_group(story: Story) -> None:
    story.write(BLOCK, offset=PLACE, later_ms=1_000)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.write(METADATA, offset=OTHER, later_ms=500)
    write_enough_log(story)
    story.flush()
    story.write(uberblock(21), later_ms=50, offset=0)
    story.flush()
    assert story.uncommitted_ms() == 50


@pytest.mark.parametrize(("txg", "is_found"), [(22, True), (23, True), (24, False)])
def test_data_of_the_next_two_groups_must_not_overwrite_a_group(
    story: Story, txg: int, is_found: bool
) -> None:
    story.write(METADATA, offset=PLACE)
    write_enough_log(story)
    story.flush()
    story.write(uberblock(21), offset=0)
    story.flush()
    write_log(story, (0, pointer(PLACE, txg=txg)))
    story.write(BLOCK, offset=PLACE)
    expected = [(Invariant.EXTENT_IS_KEPT, ())] if is_found else []
    assert found(story) == expected


def test_pointed_data_are_kept_like_their_groups_blocks(story: Story) -> None:
    story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=22)))
    write_enough_log(story)
    story.flush()
    for txg in (21, 22, 23):
        story.write(METADATA, offset=PLACE if txg == 23 else OTHER + txg * MIB)
        story.flush()
        story.write(uberblock(txg), offset=txg * 1024)
        story.flush()
    write_enough_log(story)
    assert found(story) == [(Invariant.EXTENT_IS_KEPT, ())]


def test_on_a_mirror_both_copies_have_to_be_covered(story: Story) -> None:
    story.whole_on = ("a", "b")
    story.begins(1)
    first, second = (story.write(data_of(1), offset=PLACE, disk=disk) for disk in (0, 1))
    logs = [
        story.write(pointing((0, pointer(PLACE, txg=22))), offset=MIB, disk=disk) for disk in (0, 1)
    ]
    assert pointed_in(story).born_in == {first: 22, second: 22}
    story.flush(disk=0)
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (second, logs[1]))]

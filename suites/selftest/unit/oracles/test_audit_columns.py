"""Blocks split over disks: which columns are the log's, and which writes are undecided then."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, uberblock, zil_block
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.recording.roles import Role
from torture.oracles.audit.disk_writes import disk_writes_in
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20
OTHER = FIRST_BLOCK + 6 * MIB


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, whole_on=())


def found(story: Story) -> list[tuple[Invariant, tuple[int, ...]]]:
    findings = story.findings(sync=Sync.ALWAYS)
    return [(finding.invariant, finding.uncovered) for finding in findings]


def test_with_split_blocks_no_data_are_accused_once_the_log_points_to_some(
    story: Story,
) -> None:
    own = story.write(BLOCK, offset=OTHER)
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=22))), offset=MIB)
    for _ in range(8):
        story.write(zil_block(), offset=2 * MIB)
    assert found(story) == []


@pytest.mark.parametrize(
    ("offset", "length", "physical_sector", "is_part"),
    [
        (MIB, 4096, 512, True),
        (MIB + 512, 4096, 512, True),
        (MIB - 512, 3584, 512, True),
        (MIB + 4096, 4096, 512, False),
        (MIB - 4096, 4096, 512, False),
        (MIB + 4096, 4096, 4096, True),
        (MIB - 4096, 8192, 4096, True),
        (MIB + 8192, 4096, 4096, False),
    ],
)
def test_a_write_beside_a_log_column_on_another_disk_is_a_log_column(
    story: Story, offset: int, length: int, physical_sector: int, is_part: bool
) -> None:
    """On a raidz, the column with the block's end, or its parity, looks like data."""
    story.physical_sector = physical_sector
    story.write(zil_block(), offset=MIB)
    other = story.write(bytes(length), offset=offset, disk=1)
    classified = disk_writes_in(story.recorded(), cut=len(story.events) - 1, is_split=True)[other]
    assert (classified.role is Role.ZIL) is is_part
    story.write(uberblock(21), offset=0)
    assert (found(story) == []) is is_part


@pytest.mark.parametrize(
    ("rows", "gap", "is_part"), [(1, 0, True), (3, 0, True), (1, 4096, False), (0.5, 0, False)]
)
def test_a_log_block_at_the_end_of_a_draids_row_continues_in_the_next_one(
    story: Story, rows: float, gap: int, is_part: bool
) -> None:
    """The row's end is 16 MiB behind another one; the next row has other disks, or the same one."""
    end = FIRST_BLOCK + int(rows * 16) * MIB
    story.write(zil_block(), offset=end - len(zil_block()))
    for disk in (0, 1):
        story.write(METADATA, offset=end + gap, disk=disk)
    story.write(uberblock(21), offset=0)
    assert (found(story) == []) is is_part


def test_a_write_that_may_hold_a_log_column_is_not_accused(story: Story) -> None:
    story.write(zil_block(), offset=MIB)
    story.write(bytes(16384), offset=MIB, disk=1)
    story.write(uberblock(21), offset=0)
    assert found(story) == []


def test_a_disk_that_holds_whole_blocks_has_no_parts(story: Story) -> None:
    story.whole_on = ("a", "b")
    story.write(zil_block(), offset=MIB)
    own = story.write(METADATA, offset=MIB, disk=1)
    story.write(uberblock(21), offset=0)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]

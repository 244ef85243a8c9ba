"""Blocks that lie on several disks in parts: which of these are the log's, and what is not known then."""

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


def test_where_blocks_are_split_no_data_are_accused_once_the_log_points_to_some(
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
    ("offset", "length", "is_part"),
    [
        (MIB, 4096, True),
        (MIB + 512, 4096, True),
        (MIB - 512, 3584, True),
        (MIB + 4096, 4096, False),
        (MIB - 4096, 4096, False),
    ],
)
def test_what_lies_beside_a_part_of_the_log_on_another_disk_is_one_too(
    story: Story, offset: int, length: int, is_part: bool
) -> None:
    """Of a raidz: the part with the end of the block, or its parity, looks like data."""
    story.write(zil_block(), offset=MIB)
    other = story.write(bytes(length), offset=offset, disk=1)
    told = disk_writes_in(story.recorded(), cut=len(story.events) - 1, is_split=True)[other]
    assert (told.role is Role.ZIL) is is_part
    story.write(uberblock(21), offset=0)
    assert (found(story) == []) is is_part


def test_what_may_be_a_part_of_the_log_and_more_is_not_accused(story: Story) -> None:
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

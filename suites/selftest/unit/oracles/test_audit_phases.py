"""The phases that a load alone seldom reaches: several blocks of the log, reused places, trims."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import METADATA, Story, label, uberblock, zil_block
from torture.facts.evidence.phase import Phase

MIB = 1 << 20


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(folder=tmp_path)


def trim(story: Story, *, offset: int) -> None:
    story.complete(story.trim(offset=offset, length=MIB))


def test_a_mirror_has_each_block_of_the_log_twice_and_that_is_not_several(story: Story) -> None:
    for disk in (0, 1):
        story.write(zil_block(), offset=0, disk=disk)
    assert story.phase() is Phase.ZIL_WRITTEN
    story.submit(zil_block(), offset=8192, disk=1)
    assert story.phase() is Phase.ZIL_SEVERAL


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


def test_a_place_overwritten_by_another_role_is_not_reused(story: Story) -> None:
    for offset in (0, MIB):
        story.write(zil_block(), offset=offset)
    story.write(METADATA, offset=0)
    trim(story, offset=MIB)
    story.flush()
    story.write(uberblock(5))
    story.flush()
    for offset in (0, MIB):
        story.write(zil_block(), offset=offset)
        assert story.phase() is Phase.ZIL_WRITTEN
        story.flush()


def test_trimming_lasts_until_a_flush_of_its_disk_covers_the_trim(story: Story) -> None:
    story.write(zil_block())
    story.flush()
    begun = story.trim(offset=MIB, length=MIB)
    assert story.phase() is Phase.TRIMMING
    story.flush()
    story.complete(begun)
    assert story.phase() is Phase.TRIMMING
    story.flush(disk=1)
    assert story.phase() is Phase.TRIMMING
    story.flush()
    assert story.phase() is Phase.ZIL_FLUSHED


def test_trimming_precedes_a_txgs_phases_and_follows_its_end(story: Story) -> None:
    story.write(METADATA)
    trim(story, offset=MIB)
    assert story.phase() is Phase.TRIMMING
    story.write(label())
    assert story.phase() is Phase.LABEL_WRITTEN
    story.write(uberblock(5))
    assert story.phase() is Phase.UBERBLOCK_WRITTEN


def test_a_flush_with_more_of_the_txg_behind_it_is_not_the_last_one_before_the_uberblock(
    story: Story,
) -> None:
    story.write(METADATA)
    flush = story.begin_flush()
    assert story.phase() is Phase.BEFORE_UBERBLOCK
    story.submit(METADATA, offset=MIB)
    assert story.phase() is Phase.METADATA_WRITTEN
    story.complete(flush)
    assert story.phase() is Phase.METADATA_WRITTEN


@pytest.mark.parametrize(
    ("tells", "phase"), [(True, Phase.METADATA_WRITTEN), (False, Phase.TXG_WRITTEN)]
)
def test_without_distinct_lengths_metadata_and_data_are_one_phase(
    story: Story, tells: bool, phase: Phase
) -> None:
    story.write(METADATA)
    assert story.phase(length_shows_metadata=tells) is phase


def test_the_moment_behind_an_acknowledgement_is_a_phase(story: Story) -> None:
    """A lying flush shows there, before the next flush makes up for it."""
    story.acknowledges(1)
    assert story.phase() is Phase.ACKNOWLEDGED
    story.begins(2)
    story.submit(zil_block())
    assert story.phase() is Phase.ACKNOWLEDGED
    story.submit(METADATA)
    assert story.phase() is Phase.METADATA_WRITTEN


def test_it_is_over_3_ms_later(story: Story) -> None:
    story.acknowledges(1)
    story.now_ns += 3_000_000
    story.begins(2)
    assert story.phase() is Phase.IDLE

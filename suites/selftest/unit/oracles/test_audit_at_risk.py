"""Acknowledged operations that no transaction group has, and how young they are in the intent log."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, uberblock
from suites.selftest.unit.oracles.test_audit_returns import block_of
from torture.facts.axes.sync import Sync
from torture.oracles.audit.due.at_risk import AtRisk


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(folder=tmp_path)
    commits(story, 4, place=1)
    return story


def commits(story: Story, txg: int, *, place: int, is_covered: bool = True) -> None:
    story.write(BLOCK, offset=place << 24)
    story.flush()
    story.write(uberblock(txg), offset=1 << 20)
    if is_covered:
        story.flush()


def at_risk(story: Story, *, later_ms: int = 0) -> AtRisk:
    story.now_ns += later_ms * 1_000_000
    found = story.audit_of_all(sync=Sync.STANDARD).at_risk
    assert found is not None
    return found


def acknowledges(story: Story, seq: int, *, is_flushed: bool = True) -> None:
    story.begins(seq)
    story.write(block_of(seq), offset=64 << 20)
    if is_flushed:
        story.flush()
    story.is_done(seq)


def test_operations_that_began_after_the_last_committed_group_are_in_none(story: Story) -> None:
    acknowledges(story, 1)
    acknowledges(story, 2)
    found = at_risk(story, later_ms=40)
    assert (found.lately, found.uncommitted, found.logged_ms) == (2, 2, 40)
    commits(story, 5, place=2)
    assert at_risk(story).uncommitted == 0


def test_a_group_whose_uberblock_is_not_covered_commits_nothing(story: Story) -> None:
    acknowledges(story, 1)
    commits(story, 5, place=2, is_covered=False)
    assert at_risk(story).uncommitted == 1


def test_an_operation_that_began_beside_a_group_under_way_is_in_a_later_one(story: Story) -> None:
    story.write(BLOCK, offset=2 << 24)
    acknowledges(story, 1)
    story.write(uberblock(5), offset=1 << 20)
    story.flush()
    assert at_risk(story).uncommitted == 1


def test_a_block_of_the_log_without_a_flush_is_as_old_as_its_write(story: Story) -> None:
    acknowledges(story, 1, is_flushed=False)
    assert at_risk(story, later_ms=30).logged_ms == 30


def test_without_a_known_block_in_the_log_its_age_is_unknown(story: Story) -> None:
    story.begins(1)
    story.is_done(1)
    found = at_risk(story, later_ms=2_000)
    assert (found.lately, found.uncommitted, found.logged_ms) == (0, 1, None)

"""The oracle's rules for operations that write a part of a block, and for half a sector."""

from __future__ import annotations

from typing import Any

import pytest

from suites.selftest.unit.oracles.oracle_story import Story
from torture.oracles.verdict.guarantee import Verdict

PART = range(2, 4)


def test_a_part_of_a_block_leaves_the_rest_of_it_as_it_was() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    story.acked("create", 3, 0, file=1, writer=1)
    findings = story.finds([[1, 1, 2, 2, 1, 1, 1, 1]], [3])
    assert findings.verdict is Verdict.INTACT
    assert (findings.torn, findings.torn_in_flight) == (0, 0)


@pytest.mark.parametrize(
    ("sectors", "damage", "lost"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 1], "stale", 1),
        ([1, 1, 2, 1, 1, 1, 1, 1], "stale", 1),
        ([1, 1, 2, "zero", 1, 1, 1, 1], "missing", 2),
        ([2, 2, 2, 2, 2, 2, 2, 2], "foreign", 1),
        ([1, 1, 2, 2, 2, 1, 1, 1], "foreign", 1),
        ([1, 1, 2, 2, 1, 1, 1, "garbage"], "torn", 1),
        ([1, 1, 2, 2, 1, 1, 1, "foreign:7:9:0:0:2"], "foreign", 1),
    ],
)
def test_an_acknowledged_part_of_a_block_allows_nothing_else(
    sectors: list[Any], damage: str, lost: int
) -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    findings = story.acked("create", 3, 0, file=1, writer=1).finds([sectors], [3])
    assert findings.verdict is Verdict.CORRUPTED
    assert getattr(findings, damage) == 1
    assert findings.lost == lost


def test_a_lost_part_does_not_blame_writes_elsewhere_in_the_block() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    story.acked("overwrite", 3, 0, size=1, sectors=range(5, 6))
    findings = story.finds([[1, 1, 1, 1, 1, 3, 1, 1]])
    assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, 1)


HALF = [1, 1, "garbage", 2, 1, 1, 1, 1]
"""Of a block of operation 1 and of a part of it that operation 2 writes."""


@pytest.mark.parametrize("kind", ["overwrite", "dsync", "scribble"])
def test_half_a_sector_of_a_write_under_way_is_allowed_where_sectors_tear(kind: str) -> None:
    for tears, verdict in ((True, Verdict.INTACT), (False, Verdict.CORRUPTED)):
        story = Story(tears_sectors=tears).acked("create", 1, 0)
        findings = story.begin(kind, 2, 0, size=1, sectors=PART).finds([HALF])
        assert findings.verdict is verdict, findings.reasons


def test_half_a_sector_of_a_write_that_returned_unsynced_is_allowed_until_the_next_sync() -> None:
    story = Story(tears_sectors=True).acked("create", 1, 0)
    story.acked("scribble", 2, 0, size=1, sectors=PART)
    assert story.finds([HALF]).verdict is Verdict.INTACT
    story.acked("overwrite", 3, 0, size=1, sectors=range(7, 8)).acked(
        "create", 4, 0, file=1, writer=1
    )
    findings = story.finds([[*HALF[:7], 3]], [4])
    assert (findings.verdict, findings.torn) == (Verdict.CORRUPTED, 1)


@pytest.mark.parametrize("place", range(8))
def test_half_a_durable_sector_is_corruption_where_sectors_tear(place: int) -> None:
    story = Story(tears_sectors=True).acked("create", 1, 0)
    story.acked("overwrite", 2, 0, size=1, sectors=PART).acked("create", 3, 0, file=1, writer=1)
    story.begin("overwrite", 4, 0, file=1, size=1, writer=1)  # elsewhere something is under way
    block: list[Any] = [1, 1, 2, 2, 1, 1, 1, 1]
    block[place] = "garbage"
    findings = story.finds([block], [3])
    assert (findings.verdict, findings.torn) == (Verdict.CORRUPTED, 1)
    assert findings.lost == 1


@pytest.mark.parametrize("halves", [2, 5, 8])
def test_several_sectors_that_are_none_are_no_split(halves: int) -> None:
    """Of a real cut over SMB: a client sent what was in its memory, and then wrote the page again."""
    story = Story(tears_sectors=True).acked("create", 1, 0).acked("dsync", 2, 0, size=1)
    story.acked("dsync", 3, 0, size=1, sectors=range(8 - halves)) if halves < 8 else None
    block: list[Any] = [3] * (8 - halves) + ["garbage"] * halves
    findings = story.begin("overwrite", 4, 0, size=1).finds([block])
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.torn, findings.lost) == (1, 1)


@pytest.mark.parametrize("half", ["garbage", "half:1:2"])
def test_of_two_cuts_one_leaves_no_two_half_sectors_in_a_block(half: str) -> None:
    story = Story(tears_sectors=True).acked("create", 1, 0).cut()
    story.begin("overwrite", 2, 0, size=1).cut()
    for halves, verdict in ((1, Verdict.INTACT), (2, Verdict.CORRUPTED)):
        block = [half] * halves + [2] * (8 - halves)
        assert story.finds([block], finds_halves=half != "garbage").verdict is verdict


def test_each_cut_leaves_one_half_sector_and_no_more() -> None:
    """A log chain ends in one place: of 32 blocks with a broken sector each, 31 are no split's."""
    story = Story(tears_sectors=True).acked("create", 1, 0, 1).begin("overwrite", 2, 0, 1, size=2)
    half: list[Any] = [2, 2, "garbage", 1, 1, 1, 1, 1]
    assert story.finds([half, 1]).verdict is Verdict.INTACT
    assert story.finds([half, half]).verdict is Verdict.CORRUPTED
    assert story.cut().finds([half, half]).verdict is Verdict.CORRUPTED
    assert story.cut().finds([half, half]).verdict is Verdict.INTACT, "there were two cuts"
    assert story.finds([half] * 32).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    ("half", "verdict"),
    [
        ("half:3:2", Verdict.INTACT),
        ("half:2:3", Verdict.INTACT),
        ("half:3:1", Verdict.CORRUPTED),
        ("half:2:1", Verdict.CORRUPTED),
        ("half:3:0", Verdict.CORRUPTED),
        ("half:9:2", Verdict.CORRUPTED),
        ("garbage", Verdict.CORRUPTED),
    ],
)
def test_a_half_sector_begins_or_ends_as_a_write_under_way_and_else_as_before(
    half: str, verdict: Verdict
) -> None:
    story = Story(tears_sectors=True).acked("create", 1, 0).acked("overwrite", 2, 0, size=1)
    story.begin("overwrite", 3, 0, size=1)
    findings = story.finds([[3, 3, half, 2, 2, 2, 2, 2]], finds_halves=True)
    assert findings.verdict is verdict, findings.reasons


def test_half_a_sector_beside_older_ones_is_torn_in_flight() -> None:
    story = Story(tears_sectors=True).acked("create", 1, 0).acked("overwrite", 2, 0, size=1)
    findings = story.begin("overwrite", 3, 0, size=1).finds([[2, 2, 2, "garbage", 2, 2, 2, 2]])
    assert (findings.verdict, findings.torn_in_flight) == (Verdict.INTACT, 1)


def test_a_file_that_came_by_rename_is_not_half_written_but_its_temporary_may_be() -> None:
    story = Story(tears_sectors=True).begin("replace", 1, 0)
    half = [["garbage", *[1] * 7]]
    assert story.finds(None, temporaries=(half,)).verdict is Verdict.INTACT
    assert story.finds(half).verdict is Verdict.CORRUPTED
    two: list[Any] = [half[0], ["garbage", "garbage", *[1] * 6]]
    longer = Story(tears_sectors=True).begin("replace", 1, 0, 1)
    assert longer.finds(None, temporaries=([half[0], 1],)).verdict is Verdict.INTACT
    assert longer.finds(None, temporaries=([half[0], half[0]],)).verdict is Verdict.CORRUPTED
    assert longer.finds(None, temporaries=(two,)).verdict is Verdict.CORRUPTED
    assert story.done(1).finds([1], temporaries=(half,)).verdict is Verdict.ROLLED_BACK
    assert (
        Story().begin("replace", 1, 0).finds(None, temporaries=(half,)).verdict is Verdict.CORRUPTED
    )


def test_a_bare_device_keeps_its_sectors_whole_with_any_ledger() -> None:
    story = Story("raw", tears_sectors=True).acked("create", 1, 0)
    story.begin("overwrite", 2, 0, size=1, sectors=PART)
    assert story.finds([[1, 1, 2, 1, 1, 1, 1, 1]]).verdict is Verdict.INTACT
    assert story.finds([HALF]).verdict is Verdict.CORRUPTED

"""The oracle's rules, one by one, each on the smallest ledger that shows it.

The oracle's rules for operations that write a part of a block, and for half a sector.
"""

from __future__ import annotations

from typing import Any

import pytest

from suites.selftest.unit.oracles.oracle_story import Story
from torture.facts.evidence.ledger import Failed
from torture.oracles.verdict.guarantee import UnreadableError, Verdict

GARBAGE: list[Any] = ["garbage"] * 8
WHOLE, PART = range(8), range(2, 4)


def test_an_acknowledged_block_that_is_there_is_intact() -> None:
    findings = Story().acked("create", 1, 0, 1).finds([1, 1])
    assert findings.verdict is Verdict.INTACT
    assert (findings.acknowledged, findings.lost) == (1, 0)


@pytest.mark.parametrize("content", [2, 1, [1, 1, 1, 2, 2, 2, 2, 2]])
def test_an_overwrite_in_flight_may_leave_each_sector_old_or_new(content: Any) -> None:
    findings = Story().acked("create", 1, 0).begin("overwrite", 2, 0, size=1).finds([content])
    assert findings.verdict is Verdict.INTACT
    assert findings.torn_in_flight == isinstance(content, list)


@pytest.mark.parametrize(
    ("written", "content", "damage", "lost"),
    [
        (WHOLE, 1, "stale", 1),
        (WHOLE, "zero", "missing", 2),
        (WHOLE, [1, 2, 2, 2, 2, 2, 2, 2], "torn", 1),
        (WHOLE, ["garbage", 2, 2, 2, 2, 2, 2, 2], "torn", 1),
        (WHOLE, GARBAGE, "torn", 1),
        (WHOLE, ["foreign:7:9:0:0:2"] * 8, "foreign", 1),
        (WHOLE, ["foreign:6:0:0:0:2"] * 8, "foreign", 1),
        (WHOLE, 77, "foreign", 1),
        (WHOLE, "errno:5", "missing", 1),
        (PART, [1, 1, 1, 1, 1, 1, 1, 1], "stale", 1),
        (PART, [1, 1, 2, 1, 1, 1, 1, 1], "stale", 1),
        (PART, [1, 1, 2, "zero", 1, 1, 1, 1], "missing", 2),
        (PART, [2, 2, 2, 2, 2, 2, 2, 2], "foreign", 1),
        (PART, [1, 1, 2, 2, 2, 1, 1, 1], "foreign", 1),
        (PART, [1, 1, 2, 2, 1, 1, 1, "garbage"], "torn", 1),
        (PART, [1, 1, 2, 2, 1, 1, 1, "foreign:7:9:0:0:2"], "foreign", 1),
    ],
)
def test_an_acknowledged_overwrite_of_a_block_or_a_part_of_it_allows_nothing_else(
    written: range, content: Any, damage: str, lost: int
) -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=written)
    findings = story.acked("create", 3, 0, file=1, writer=1).finds([content], [3])
    assert findings.verdict is Verdict.CORRUPTED
    assert getattr(findings, damage) == 1
    assert findings.lost == lost


def test_old_content_everywhere_is_a_rollback_with_its_length() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1)
    findings = story.acked("overwrite", 3, 0, size=1).cut().finds([1])
    assert findings.verdict is Verdict.ROLLED_BACK
    assert (findings.lost, findings.stale) == (2, 1)
    assert (
        findings.rollback_ms == 30.0
    )  # the first lost acknowledgement was heard at 30, the cut at 60


def test_a_later_write_that_survived_makes_an_earlier_loss_corruption() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1).cut()
    story.acked("create", 3, 0, file=1, writer=1)
    assert story.finds([1], [3]).verdict is Verdict.CORRUPTED
    assert "mixed" in story.finds([1], [3]).reasons[0]
    assert story.finds([1], None).verdict is Verdict.ROLLED_BACK


def test_acknowledgements_after_the_cut_count_like_those_before() -> None:
    story = Story().acked("create", 1, 0).cut().acked("overwrite", 2, 0, size=1)
    assert story.finds([2]).verdict is Verdict.INTACT
    findings = story.finds([1])
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.rollback_ms == 0.0


def test_a_scribble_is_owed_only_after_the_next_fsync_of_its_file() -> None:
    story = Story().acked("create", 1, 0, 1).acked("scribble", 2, 0, size=2)
    assert story.finds([1, 1]).verdict is Verdict.INTACT
    assert story.finds([2, 1]).verdict is Verdict.INTACT
    story.acked("overwrite", 3, 1, size=2)
    assert story.finds([2, 3]).verdict is Verdict.INTACT
    findings = story.finds([1, 3])
    assert findings.verdict is Verdict.ROLLED_BACK  # a crash within the fsync leaves this
    assert findings.lost == 1
    story.acked("overwrite", 4, 1, size=2)
    assert story.finds([1, 4]).verdict is Verdict.CORRUPTED


def test_o_dsync_does_not_cover_the_rest_of_the_file() -> None:
    story = Story().acked("create", 1, 0, 1).acked("scribble", 2, 0, size=2)
    story.acked("dsync", 3, 1, size=2)
    assert story.finds([1, 3]).verdict is Verdict.INTACT
    assert story.finds([1, 1]).lost == 1


def test_another_files_fsync_covers_nothing_but_on_a_raw_disk_it_does() -> None:
    def scribbled(mode: str) -> Story:
        story = Story(mode).acked("create", 1, 0).acked("scribble", 2, 0, size=1)
        return story.acked("create", 3, 0, file=1, writer=1).acked(
            "overwrite", 4, 0, file=1, size=1, writer=1
        )

    assert scribbled("files").finds([1], [4]).verdict is Verdict.INTACT
    assert scribbled("raw").finds([2], [4]).verdict is Verdict.INTACT
    assert scribbled("raw").finds([1], [4]).verdict is Verdict.CORRUPTED


def test_a_raw_fsync_that_began_before_the_scribble_returned_does_not_cover_it() -> None:
    story = Story("raw").acked("create", 1, 0).acked("create", 2, 0, file=1, writer=1)
    story.begin("overwrite", 3, 0, file=1, size=1, writer=1)
    story.acked("scribble", 4, 0, size=1).done(3)
    assert story.finds([1], [3]).verdict is Verdict.INTACT
    assert story.finds([4], [3]).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    "blocks", [[1, 2, 2], [1, 2], [1], [1, "zero", 2], [1, ["zero", *[2] * 7]]]
)
def test_an_append_in_flight_may_leave_any_size_and_zeros(blocks: list[Any]) -> None:
    story = Story().acked("create", 1, 0).begin("append", 2, 1, 2, size=3)
    assert story.finds(blocks).verdict is Verdict.INTACT


def test_an_acknowledged_append_owes_its_size_and_data() -> None:
    story = Story().acked("create", 1, 0).acked("append", 2, 1, 2, size=3)
    story.acked("create", 3, 0, file=1, writer=1)
    for blocks in ([1], [1, 2], [1, 2, "zero"]):
        findings = story.finds(blocks, [3])
        assert findings.verdict is Verdict.CORRUPTED
        assert (findings.lost, findings.missing) == (1, 1)


def test_a_file_is_never_longer_than_it_was_made() -> None:
    assert Story().acked("create", 1, 0).finds([1, "zero"]).verdict is Verdict.CORRUPTED


def test_a_create_in_flight_may_leave_no_file_an_empty_one_or_a_part() -> None:
    story = Story().begin("create", 1, 0, 1)
    for blocks in (None, [], [1], ["zero", 1], [1, 1]):
        assert story.finds(blocks).verdict is Verdict.INTACT
    assert story.finds([GARBAGE, 1]).verdict is Verdict.CORRUPTED
    story.done(1)
    for blocks in (None, [], [1], ["zero", 1]):
        assert story.finds(blocks).verdict is Verdict.ROLLED_BACK


def test_a_rename_in_flight_leaves_the_old_file_or_the_whole_new_one() -> None:
    story = Story().acked("create", 1, 0).acked("create", 2, 0, file=1, writer=1)
    story.begin("replace", 3, 0, 1)
    assert story.finds([1], [2]).verdict is Verdict.INTACT
    assert story.finds([1], [2], temporaries=([3, "zero"],)).verdict is Verdict.INTACT
    assert story.finds([3, 3], [2]).verdict is Verdict.INTACT
    for blocks in (None, [], [3], [3, "zero"], [1, 3], ["zero", "zero"]):
        assert story.finds(blocks, [2]).verdict is Verdict.CORRUPTED
    story.done(3)
    assert story.finds([3, 3], [2]).verdict is Verdict.INTACT
    findings = story.finds([1], [2])
    assert (findings.verdict, findings.lost, findings.stale) == (Verdict.ROLLED_BACK, 1, 1)
    assert story.finds([1], [2], temporaries=([3, 3],)).verdict is Verdict.ROLLED_BACK


def test_a_temporary_file_is_only_its_renames() -> None:
    story = Story().acked("create", 1, 0).begin("replace", 2, 0)
    assert story.finds([1], temporaries=([3],)).verdict is Verdict.CORRUPTED
    assert story.finds([1], temporaries=([2, 2],)).verdict is Verdict.CORRUPTED
    assert story.finds([1], temporaries=(5,)).verdict is Verdict.CORRUPTED


def test_an_unlink_in_flight_leaves_the_file_or_not_but_no_part_of_it() -> None:
    story = Story().acked("create", 1, 0).acked("create", 2, 0, file=1, writer=1)
    story.begin("unlink", 3)
    assert story.finds(None, [2]).verdict is Verdict.INTACT
    assert story.finds([1], [2]).verdict is Verdict.INTACT
    assert story.finds([], [2]).verdict is Verdict.CORRUPTED
    story.done(3)
    findings = story.finds([1], [2])
    assert (findings.verdict, findings.lost) == (Verdict.ROLLED_BACK, 1)


def test_a_name_that_came_back_with_right_content_is_a_lost_unlink() -> None:
    story = Story().acked("create", 1, 0).acked("unlink", 2).acked("create", 3, 0, file=1, writer=1)
    findings = story.finds([1], [3])
    assert (findings.verdict, findings.lost, findings.stale) == (Verdict.CORRUPTED, 1, 1)


def test_a_lost_file_takes_every_acknowledgement_made_on_it_along() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1)
    story.acked("append", 3, 1, size=2).acked("create", 4, 0, file=1, writer=1)
    findings = story.finds(None, [4])
    assert (findings.verdict, findings.lost, findings.missing) == (Verdict.CORRUPTED, 3, 1)


def test_after_a_failure_the_operation_is_in_flight_for_ever() -> None:
    story = Story().acked("create", 1, 0).begin("overwrite", 2, 0, size=1)
    story.events.append(Failed(t_ms=0.0, seq=2, errno=5, call="fsync"))
    story.acked("create", 3, 0, file=1, writer=1)
    for content in (1, 2, [1, 1, 1, 1, 2, 2, 2, 2]):
        findings = story.finds([content], [3])
        assert findings.verdict is Verdict.INTACT
        assert "errno 5" in findings.reasons[-1]


def test_data_that_the_filesystem_does_not_show_is_lost() -> None:
    story = Story().acked("create", 1, 0).acked("create", 2, 0, file=1, writer=1)
    findings = story.finds(5, [2])
    assert (findings.verdict, findings.lost, findings.missing) == (Verdict.CORRUPTED, 1, 1)
    hidden = story.finds([1], [2], files=[], directory_errno=5)
    assert (hidden.verdict, hidden.lost) == (Verdict.CORRUPTED, 2)
    gone = story.finds(files=[], directory_errno=2)
    assert (gone.verdict, gone.lost) == (Verdict.CORRUPTED, 2)
    assert gone.rollback_ms is None
    dangling = {"file": 0, "name": "f0", "listed": True, "errno": 2}
    assert story.finds(files=[dangling]).verdict is Verdict.CORRUPTED


def test_files_that_the_load_did_not_make_are_foreign_but_lost_and_found_is_not() -> None:
    story = Story().acked("create", 1, 0)
    assert story.finds([1], [1]).foreign == 1
    assert story.finds([1], unexpected=["lost+found"]).verdict is Verdict.INTACT
    assert story.finds([1], unexpected=["core"]).foreign == 1


def test_an_untouched_raw_region_may_hold_anything_but_this_trials_blocks() -> None:
    story = Story("raw").acked("create", 1, 0)
    for before in ("zero", GARBAGE, ["foreign:6:1:0:0:3"] * 8):
        assert story.finds([1], [before]).verdict is Verdict.INTACT
    for misplaced in (["foreign:7:0:0:0:1"] * 8, 1):
        assert story.finds([1], [misplaced]).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    "story",
    [
        Story().acked("create", 1, 0).acked("overwrite", 1, 0, size=1),
        Story().done(1),
        Story().begin("create", 1, 0).begin("create", 2, 0, file=1),
        Story().acked("overwrite", 1, 0, size=1),
    ],
)
def test_a_ledger_that_contradicts_itself_is_no_evidence(story: Story) -> None:
    with pytest.raises(UnreadableError):
        story.finds([1])


def test_a_read_back_that_did_not_look_everywhere_is_no_evidence() -> None:
    with pytest.raises(UnreadableError, match="did not look"):
        Story().acked("create", 1, 0).acked("create", 2, 0, file=30).finds([1])


def test_a_part_of_a_block_leaves_the_rest_of_it_as_it_was() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    story.acked("create", 3, 0, file=1, writer=1)
    findings = story.finds([[1, 1, 2, 2, 1, 1, 1, 1]], [3])
    assert findings.verdict is Verdict.INTACT
    assert (findings.torn, findings.torn_in_flight) == (0, 0)


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

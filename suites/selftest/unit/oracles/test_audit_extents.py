"""Blocks of the last transaction groups and old root blocks are kept: each overwrite is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from suites.selftest.unit.oracles.audit_scenes import Stage
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.facts.recording.intent_log import Extent, Root, root_in
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20


def taken(story: Story) -> list[int]:
    """The events that hit kept blocks."""
    return [x.event for x in story.findings() if x.invariant is Invariant.EXTENT_IS_KEPT]


KEPT = {
    "groups count by their numbers and empty ones write no uberblock": (
        "write data at 1, write data at 2, group 5, write data at 1, group 8, "
        "second=write data at 1, write data at 2, group 10, accuses second"
    ),
    "a group without an uberblock is not judged": (
        "write data at 1, group 5, write data at 1, accuses"
    ),
    "a group may rewrite its own blocks": "write data at 1, write data at 1, group 5, accuses",
    "a group may rewrite older blocks": (
        "write data at 1, group 5, group 6, group 7, write data at 1, group 8, accuses"
    ),
    "neighbours and other disks are no finding": (
        "write data at 1, group 5, write data at 1040K, write metadata at 1020K, "
        "write data at 1 on b, group 6, accuses"
    ),
    "a trim of a kept block is found": (
        "write data at 1, trim 1 at 2, group 5, trim=trim 1 at 1, group 6, accuses trim"
    ),
    "the log is freed at once and may lie anywhere": (
        "write log at 1, flush, group 5, write metadata at 1, group 6, write log at 1, flush, "
        "group 7, write metadata at 1, group 8, accuses"
    ),
    "the log may lie where the group under way wrote before": (
        "write metadata at 1, write log at 1, group 5, write metadata at 1, group 6, accuses"
    ),
    "with split log blocks no overwrite is reported": (
        "write split-log at 1, write data at 2 on b, group 5, write data at 2 on b, group 6, "
        "accuses"
    ),
    "a trim of blocks that the group under way wrote is found": (
        "write data at 1, trim=trim 512B at 1, group 5, accuses trim"
    ),
    "blocks of the last group must not be overwritten": (
        "write data at 1 on b, group 5, over=write metadata at 1+15K+512B on b, group 6, "
        "accuses over"
    ),
    "nor those of the group before": (
        "write data at 1 on b, group 5, group 6, over=write metadata at 1+15K+512B on b, group 7, "
        "accuses over"
    ),
    "a trim larger than all written blocks is found": (
        "write data at 3, group 5, trim 64 at 4, trim 3 at 0, trim 64 at 0 on b, "
        "trim=trim 3+512B at 0, group 6, accuses trim, "
        "group 7, trim 64 at 0, group 8, accuses trim"
    ),
    "zeroes over a kept block are found": (
        "write data at 1, group 5, zeroes=zero 512B at 1, group 7, accuses zeroes"
    ),
}
LOGS = {"log": log_block((0, 512)), "split-log": log_block((0, 512), is_split=True)}


@pytest.mark.parametrize("scene", KEPT.values(), ids=KEPT)
def test_a_block_is_kept_for_two_groups(scene: str, story: Story) -> None:
    Stage(story, accused=taken, contents=LOGS).play(scene)


@pytest.mark.parametrize(("born", "is_taken"), [(8, True), (6, True), (5, True), (4, False)])
def test_a_trim_of_data_that_the_log_points_to_is_found_before_their_group_ends(
    story: Story, born: int, *, is_taken: bool
) -> None:
    story.write(BLOCK, offset=FIRST_BLOCK)
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=born))))
    trim = story.trim(offset=FIRST_BLOCK, length=512)
    story.flush()
    story.write(uberblock(7))
    story.flush()
    assert taken(story) == ([trim] if is_taken else [])


# A root block must stay for as long as an uberblock needs it, however old the block is.

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "writes.json"
ROOT, OTHER = FIRST_BLOCK + MIB, FIRST_BLOCK + 2 * MIB
GANG = 1 << 63


@pytest.fixture
def rooted(tmp_path: Path) -> Story:
    """A pool whose root block lies at `ROOT`, by group 5."""
    rooted = Story(folder=tmp_path)
    ends(rooted, 5, root=ROOT)
    return rooted


def ends(
    rooted: Story, txg: int, *, root: int, born: int | None = None, length: int = 4096
) -> None:
    """A group that writes its root block there, unless it was born in an older one."""
    if born is None:
        rooted.write(METADATA, offset=root)
    rooted.flush()
    rooted.write(uberblock(txg, root=pointer(root, txg=born or txg, length=length)))
    rooted.flush()


def test_a_real_uberblock_says_where_its_root_block_lies() -> None:
    head = bytes.fromhex(json.loads(RECORDED.read_text())["uberblock"]["head"])
    root = root_in(head.ljust(1024, b"\0"))
    assert root is not None
    assert root.txg == 4
    assert Extent(vdev=0, offset_bytes=0x38 * 512, length_bytes=512) in root.extents


@pytest.mark.parametrize("length", [0, 24, 167])
def test_an_uberblock_that_is_cut_short_has_no_root(length: int) -> None:
    whole = uberblock(5, root=pointer(ROOT, txg=5))
    assert root_in(whole[:length]) is None
    assert root_in(whole[:168]) == Root(
        txg=5, extents=(Extent(vdev=0, offset_bytes=MIB, length_bytes=16384),)
    )


def test_a_block_of_a_file_and_a_gang_block_have_no_root() -> None:
    whole = uberblock(5, root=pointer(ROOT, txg=5))
    assert root_in(whole.ljust(128 << 10, b"\0")) is None
    gang = bytearray(whole)
    gang[55] |= GANG >> 56
    assert root_in(bytes(gang)) is None


ROOTS = {
    "a root block is in use until another group writes one, after empty groups": (
        "over=write metadata at 6, roots 12 7, accuses over"
    ),
    "an uberblock of an older root leaves that in use": (
        "roots 9 6 5, over=write metadata at 6, roots 13 7, accuses over"
    ),
    "a root block is kept for the group after the one that freed it": (
        "roots 10 7, over=write metadata at 6, roots 11 8, accuses over"
    ),
    "a root block is kept for the next group, too": (
        "roots 10 7, over=write metadata at 6, roots 12 8, accuses over"
    ),
    "a root block is free after that": (
        "roots 10 7, over=write metadata at 6, roots 13 8, accuses"
    ),
    "a trim of a root block is found": "trim=trim 512B at 6, roots 12 7, accuses trim",
    "a root block that moves to another vdev leaves none in use": (
        "flush, write root-on-another-vdev, flush, write metadata at 6, roots 9 7, accuses"
    ),
}


@pytest.mark.parametrize("scene", ROOTS.values(), ids=ROOTS)
def test_a_root_block_is_kept_while_an_uberblock_needs_it(scene: str, rooted: Story) -> None:
    """With `roots`: a group, the MiB of its root block, and the group of that if it is older."""

    def roots(txg: str, place: str, born: str | None = None) -> None:
        ends(rooted, int(txg), root=int(place) * MIB, born=int(born) if born else None)

    elsewhere = {"root-on-another-vdev": uberblock(6, root=pointer(ROOT, txg=6, vdev=1))}
    Stage(rooted, accused=taken, contents=elsewhere, verbs={"roots": roots}).play(scene)


def test_a_root_block_that_its_group_did_not_write_is_ignored(tmp_path: Path) -> None:
    rooted = Story(folder=tmp_path)
    ends(rooted, 4, root=OTHER)
    ends(rooted, 5, root=ROOT, born=5)
    rooted.write(METADATA, offset=ROOT)
    ends(rooted, 8, root=OTHER + MIB, length=512)
    rooted.write(METADATA, offset=OTHER + MIB + 512)
    ends(rooted, 12, root=OTHER)
    assert taken(rooted) == []


def test_with_split_blocks_no_root_is_known(rooted: Story) -> None:
    rooted.whole_on = ()
    rooted.write(METADATA, offset=ROOT)
    ends(rooted, 12, root=OTHER)
    assert taken(rooted) == []

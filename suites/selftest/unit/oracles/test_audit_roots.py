"""A root block must stay for as long as an uberblock needs it, however old the block is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import METADATA, Story, uberblock
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer
from torture.facts.recording.intent_log import Extent, Root, root_in
from torture.oracles.audit.invariants import Invariant

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "writes.json"
MIB = 1 << 20
ROOT, OTHER = FIRST_BLOCK + MIB, FIRST_BLOCK + 2 * MIB
GANG = 1 << 63


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A pool whose root block lies at `ROOT`, by group 5."""
    story = Story(folder=tmp_path)
    ends(story, 5, root=ROOT)
    return story


def ends(story: Story, txg: int, *, root: int, born: int | None = None, length: int = 4096) -> None:
    """A group that writes its root block there, unless it was born in an older one."""
    if born is None:
        story.write(METADATA, offset=root)
    story.flush()
    story.write(uberblock(txg, root=pointer(root, txg=born or txg, length=length)))
    story.flush()


def taken(story: Story) -> list[int]:
    return [x.event for x in story.findings() if x.invariant is Invariant.EXTENT_IS_KEPT]


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


def test_a_root_block_is_in_use_until_another_group_writes_one(story: Story) -> None:
    """Empty groups passed in between: by its own number it was written long ago."""
    overwrites = story.write(METADATA, offset=ROOT)
    ends(story, 12, root=OTHER)
    assert taken(story) == [overwrites]


def test_an_uberblock_of_an_older_root_leaves_that_in_use(story: Story) -> None:
    ends(story, 9, root=ROOT, born=5)
    overwrites = story.write(METADATA, offset=ROOT)
    ends(story, 13, root=OTHER)
    assert taken(story) == [overwrites]


@pytest.mark.parametrize(("txg", "is_taken"), [(11, True), (12, True), (13, False)])
def test_a_root_block_is_kept_for_two_groups_after_the_one_that_freed_it(
    story: Story, txg: int, *, is_taken: bool
) -> None:
    ends(story, 10, root=OTHER)
    overwrites = story.write(METADATA, offset=ROOT)
    ends(story, txg, root=OTHER + MIB)
    assert taken(story) == ([overwrites] if is_taken else [])


def test_a_trim_of_a_root_block_is_found(story: Story) -> None:
    trim = story.trim(offset=ROOT, length=512)
    ends(story, 12, root=OTHER)
    assert taken(story) == [trim]


def test_a_root_block_that_its_group_did_not_write_is_ignored(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    ends(story, 4, root=OTHER)
    ends(story, 5, root=ROOT, born=5)
    story.write(METADATA, offset=ROOT)
    ends(story, 8, root=OTHER + MIB, length=512)
    story.write(METADATA, offset=OTHER + MIB + 512)
    ends(story, 12, root=OTHER)
    assert taken(story) == []


def test_a_root_block_that_moves_to_another_vdev_leaves_none_in_use(story: Story) -> None:
    story.flush()
    story.write(uberblock(6, root=pointer(ROOT, txg=6, vdev=1)))
    story.flush()
    story.write(METADATA, offset=ROOT)
    ends(story, 9, root=OTHER)
    assert taken(story) == []


def test_with_split_blocks_no_root_is_known(story: Story) -> None:
    story.whole_on = ()
    story.write(METADATA, offset=ROOT)
    ends(story, 12, root=OTHER)
    assert taken(story) == []

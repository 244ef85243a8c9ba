"""The log holds all that an acknowledged operation wrote, or the audit says so."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import Story, log_block, log_with, uberblock
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.evidence.ledger import BLOCK_SECTORS, SECTOR_BYTES
from torture.facts.recording.intent_log import logged_data_in
from torture.oracles.audit.audit import audit
from torture.oracles.audit.audit_terms import AuditTerms
from torture.oracles.audit.invariants import Invariant
from vmimages.client.load import blocks
from vmimages.client.load.blocks import BLOCK_BYTES, Encoder

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "zil-block.json"
MIB = 1 << 20
FILE, BLOCKS = 3, (4, 5)
PLACE = 2 * MIB


def begins(story: Story, seq: int = 1, more: dict[str, object] | None = None) -> None:
    line = {"op": "overwrite", "writer": 0, "file": FILE, "blocks": BLOCKS, "size": 9}
    story.says(event="begin", seq=seq, **(line | (more or {})))


def written(seq: int = 1) -> bytes:
    """The data of an operation, its blocks side by side."""
    encoder = Encoder(7)
    return b"".join(encoder.block(file=FILE, seq=seq, index=index) for index in BLOCKS)


def spoilt(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def logs(story: Story, *writes: tuple[int, bytes]) -> None:
    story.write(log_with(*writes))
    story.flush()


def lacking(
    story: Story,
    *,
    writes_once: bool = True,
    invariant: Invariant = Invariant.LOGGED_IS_WHOLE,
) -> list[int]:
    found = audit(
        story.recorded(),
        cut=len(story.events) - 1,
        terms=AuditTerms(sync=Sync.STANDARD, whole_on=story.whole_on, writes_once=writes_once),
    )
    return [x.event for x in found.findings if x.invariant is invariant]


def test_the_format_of_the_load_is_known() -> None:
    assert (blocks.SECTOR_BYTES, blocks.SECTORS) == (SECTOR_BYTES, BLOCK_SECTORS)


def test_the_data_of_a_real_block_are_found() -> None:
    block = zlib.decompress(base64.b64decode(json.loads(RECORDED.read_text())["zlib"]))
    found = list(logged_data_in(block))
    assert [(x.offset_bytes, len(x.data)) for x in found] == [(39157760, 32768), (72712192, 32768)]
    assert all(x.data in block for x in found)
    assert len({x.volume for x in found}) == 1


def test_an_operation_that_is_wholly_logged_is_whole(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    logs(story, (9 * MIB, written()[BLOCK_BYTES:]))
    story.is_done(1)
    assert lacking(story) == []


@pytest.mark.parametrize("at", [0, 20, 60, 511, 5000, 2 * BLOCK_BYTES - 1])
def test_garbage_behind_a_header_is_found(story: Story, at: int) -> None:
    begins(story)
    logs(story, (PLACE, spoilt(written(), at)))
    assert lacking(story) == []
    done = story.is_done(1)
    assert lacking(story) == [done]


def test_all_garbage_behind_right_headers_is_found(story: Story) -> None:
    begins(story)
    data = written()
    starts = range(0, len(data), SECTOR_BYTES)
    logs(story, (PLACE, b"".join(data[at : at + 40].ljust(SECTOR_BYTES, b"x") for at in starts)))
    done = story.is_done(1)
    assert lacking(story) == [done]


def test_a_sound_copy_makes_up_for_one_that_is_not(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, spoilt(written(), 60)))
    logs(story, (PLACE, written()[:SECTOR_BYTES]))
    story.is_done(1)
    assert lacking(story) == []


def test_a_block_that_is_not_logged_at_all_is_found(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    done = story.is_done(1)
    assert lacking(story) == [done]


def test_only_the_sectors_that_an_operation_wrote_are_asked_for(story: Story) -> None:
    begins(story, more={"blocks": (4,), "sectors": (2, 3)})
    logs(story, (PLACE, written()[2 * SECTOR_BYTES : 5 * SECTOR_BYTES]))
    story.is_done(1)
    assert lacking(story) == []


@pytest.mark.parametrize(
    "more", [{"op": "unlink"}, {"op": "scribble"}, {"op": "transaction"}, {"what": {"x": 1}}]
)
def test_an_operation_without_load_blocks_is_not_checked(
    story: Story, more: dict[str, object]
) -> None:
    begins(story, more=more)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    story.is_done(1)
    assert lacking(story) == []


def test_an_uberblock_since_it_began_vouches_and_one_before_does_not(story: Story) -> None:
    story.write(uberblock(5))
    begins(story, 1)
    logs(story, (PLACE, written(1)[:BLOCK_BYTES]))
    lacks = story.is_done(1)
    begins(story, 2)
    story.submit(uberblock(6))
    logs(story, (PLACE, written(2)[:BLOCK_BYTES]))
    story.is_done(2)
    assert lacking(story) == [lacks]


def test_an_operation_without_visible_sectors_is_not_accused(story: Story) -> None:
    """A client may compress or encrypt."""
    begins(story)
    logs(story, (PLACE, bytes(4096)))
    story.is_done(1)
    assert lacking(story) == []


def test_with_data_elsewhere_in_the_pool_no_operation_is_accused(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=22))))
    story.flush()
    story.is_done(1)
    assert lacking(story) == []


def test_with_a_log_block_split_over_disks_no_operation_is_accused(story: Story) -> None:
    story.write(log_block((0, 512), is_split=True))
    begins(story)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    story.is_done(1)
    assert lacking(story) == []


def test_a_filesystem_that_writes_twice_is_not_checked(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, written()[:BLOCK_BYTES]))
    story.is_done(1)
    assert lacking(story, writes_once=False) == []


@settings(deadline=None)
@given(
    cuts=st.lists(st.integers(1, 2 * BLOCK_BYTES // 8 - 1).map(lambda n: 8 * n), max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_records_may_be_cut_at_any_multiple_of_8_bytes(
    cuts: list[int], order: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And reach the disks in any order."""
    story = Story(folder=tmp_path_factory.mktemp("s"))
    begins(story)
    data = written()
    places = sorted({0, *cuts, len(data)})
    pieces = [(PLACE + a, data[a:b]) for a, b in pairwise(places)]
    order.shuffle(pieces)
    for piece in pieces:
        logs(story, piece)
    story.is_done(1)
    assert lacking(story) == []


def test_a_sector_that_is_cut_and_spoilt_is_found(story: Story) -> None:
    begins(story)
    data = spoilt(written(), 110)
    logs(story, (PLACE, data[:104]))
    logs(story, (PLACE + 104, data[104:]))
    done = story.is_done(1)
    assert lacking(story) == [done]


def test_halves_of_two_writes_are_no_finding_if_a_sound_copy_follows(story: Story) -> None:
    """A record is read when it is logged, and the place may be written in between."""
    begins(story, 1)
    logs(story, (PLACE, written(1)))
    story.is_done(1)
    begins(story, 2)
    logs(story, (PLACE, written(1)[:104]))
    logs(story, (PLACE + 104, written(2)[104:]))
    logs(story, (PLACE, written(2)))
    story.is_done(2)
    assert lacking(story) == []


def test_an_unmatched_part_of_a_sector_is_no_finding(story: Story) -> None:
    begins(story)
    logs(story, (PLACE, written()[: BLOCK_BYTES + 8]))
    story.is_done(1)
    assert lacking(story) == []


def test_parts_that_do_not_meet_tell_nothing(story: Story) -> None:
    begins(story, 1)
    logs(story, (PLACE, written(1)[:104]))
    logs(story, (PLACE + 104, written(1)[104:]))
    story.is_done(1)
    begins(story, 2)
    logs(story, (PLACE + SECTOR_BYTES, written(2)[SECTOR_BYTES:]))
    logs(story, (PLACE, written(2)[:208]))
    story.is_done(2)
    assert lacking(story) == []


def test_a_sector_in_three_parts_tells_nothing(story: Story) -> None:
    begins(story)
    for start, end in ((0, 128), (384, 2 * BLOCK_BYTES), (128, 384)):
        logs(story, (PLACE + start, written()[start:end]))
    story.is_done(1)
    assert lacking(story) == []


@pytest.mark.parametrize("mode", ["raw", "files"])
def test_on_a_bare_device_sectors_lie_as_in_their_file(story: Story, mode: str) -> None:
    story.says(event="hello", trial=7, mode=mode)
    begins(story, 1)
    logs(story, (PLACE, written(1)))
    story.is_done(1)
    begins(story, 2)
    logs(story, (PLACE, written(2)[:BLOCK_BYTES]))
    logs(story, (PLACE + 2 * BLOCK_BYTES, written(2)[BLOCK_BYTES:]))
    done = story.is_done(2)
    assert lacking(story) == ([done] if mode == "raw" else [])


def absent(story: Story, *, writes_once: bool = True) -> list[int]:
    """The acknowledgements of operations that no covered write can hold."""
    return lacking(story, writes_once=writes_once, invariant=Invariant.ACKNOWLEDGED_IS_DURABLE)


def two_writers(story: Story, *, more: dict[str, object] | None = None) -> None:
    """Both operations are under way, and a flush covers the data of the first."""
    begins(story, 1)
    begins(story, 2, more)
    logs(story, (PLACE, written(1)))
    story.is_done(1)


def test_another_writers_block_keeps_no_operation(story: Story) -> None:
    """As where a client drops one flush of several at a failover of its paths."""
    two_writers(story)
    done = story.is_done(2)
    assert absent(story) == [done]
    assert lacking(story) == []


def test_its_own_block_keeps_an_operation_beside_another(story: Story) -> None:
    two_writers(story)
    logs(story, (9 * MIB, written(2)))
    story.is_done(2)
    assert absent(story) == []


def test_a_group_since_it_began_may_hold_an_operation(story: Story) -> None:
    two_writers(story)
    story.submit(uberblock(6))
    story.is_done(2)
    assert absent(story) == []


def test_a_group_from_before_it_holds_no_operation(story: Story) -> None:
    story.write(uberblock(5))
    story.flush()
    two_writers(story)
    done = story.is_done(2)
    assert absent(story) == [done]


def test_data_elsewhere_in_the_pool_may_be_those_of_an_operation(story: Story) -> None:
    two_writers(story)
    story.write(pointing((0, pointer(FIRST_BLOCK, txg=22))))
    story.flush()
    story.is_done(2)
    assert absent(story) == []


@pytest.mark.parametrize("more", [{"op": "unlink"}, {"what": {"x": 1}}])
def test_an_operation_without_load_blocks_is_not_sought(
    story: Story, more: dict[str, object]
) -> None:
    two_writers(story, more=more)
    story.is_done(2)
    assert absent(story) == []


def test_a_log_that_shows_no_data_may_hold_any_operation(story: Story) -> None:
    """A client may compress or encrypt. A block that is split over disks may hold anything, too."""
    begins(story)
    logs(story, (PLACE, bytes(4096)))
    story.is_done(1)
    assert absent(story) == []
    story.write(log_block((0, 512), is_split=True))
    two_writers(story)
    story.is_done(2)
    assert absent(story) == []


def test_a_second_copy_of_the_data_may_be_an_operations_own(story: Story) -> None:
    two_writers(story)
    done = story.is_done(2)
    assert absent(story) == [done]
    assert absent(story, writes_once=False) == []

"""The log holds all that an acknowledged operation wrote, or the audit says so."""

from __future__ import annotations

import base64
import json
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import Story, log_block, log_with
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs
from suites.selftest.unit.pointing import FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.evidence.ledger import BLOCK_SECTORS, SECTOR_BYTES
from torture.facts.recording.intent_log import logged_data_in
from torture.oracles.audit.audit import AuditTerms, audit
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


ELSEWHERE = {
    "split-log": log_block((0, 512), is_split=True),
    "pointing-log": pointing((0, pointer(FIRST_BLOCK, txg=22))),
}


def played(story: Story, scene: str, *, invariant: Invariant) -> None:
    """With `load` for the begin of an operation, and verbs that log its bytes from one to another."""

    def log(seq: str, start: str = "0", end: str = "8192", *, place: int = PLACE) -> None:
        logs(story, (place + int(start), written(int(seq))[int(start) : int(end)]))

    def log_spoilt(at: str, start: str = "0", end: str = "8192") -> None:
        logs(story, (PLACE + int(start), spoilt(written(), int(at))[int(start) : int(end)]))

    verbs: Verbs = {
        "load": lambda seq: begins(story, int(seq)),
        "log": log,
        "log-elsewhere": partial(log, place=9 * MIB),
        "log-spoilt": log_spoilt,
        "log-zeroes": lambda: logs(story, (PLACE, bytes(4096))),
    }
    accused = partial(lacking, invariant=invariant)
    Stage(story, accused=accused, contents=ELSEWHERE, verbs=verbs).play(scene)


WHOLE = {
    "an operation that is wholly logged is whole": (
        "load 1, log 1 0 4096, log-elsewhere 1 4096, done 1, accuses"
    ),
    "a sound copy makes up for one that is not": (
        "load 1, log-spoilt 60, log 1 0 512, done 1, accuses"
    ),
    "a block that is not logged at all is found": (
        "load 1, log 1 0 4096, done=done 1, accuses done"
    ),
    "an uberblock since it began vouches and one before does not": (
        "write uberblock:5, load 1, log 1 0 4096, lacks=done 1, "
        "load 2, submit uberblock:6, log 2 0 4096, done 2, accuses lacks"
    ),
    "an operation without visible sectors is not accused, as a client may compress or encrypt": (
        "load 1, log-zeroes, done 1, accuses"
    ),
    "with data elsewhere in the pool no operation is accused": (
        "load 1, log 1 0 4096, write pointing-log, flush, done 1, accuses"
    ),
    "with a log block split over disks no operation is accused": (
        "write split-log, load 1, log 1 0 4096, done 1, accuses"
    ),
    "a sector that is cut and spoilt is found": (
        "load 1, log-spoilt 110 0 104, log-spoilt 110 104, done=done 1, accuses done"
    ),
    "halves of two writes are no finding if a sound copy follows": (
        "load 1, log 1, done 1, load 2, log 1 0 104, log 2 104, log 2, done 2, accuses"
    ),
    "an unmatched part of a sector is no finding": "load 1, log 1 0 4104, done 1, accuses",
    "parts that do not meet tell nothing": (
        "load 1, log 1 0 104, log 1 104, done 1, load 2, log 2 512, log 2 0 208, done 2, accuses"
    ),
    "a sector in three parts tells nothing": (
        "load 1, log 1 0 128, log 1 384, log 1 128 384, done 1, accuses"
    ),
}


@pytest.mark.parametrize("scene", WHOLE.values(), ids=WHOLE)
def test_all_of_an_acknowledged_operation_is_logged(scene: str, story: Story) -> None:
    played(story, scene, invariant=Invariant.LOGGED_IS_WHOLE)


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


TWO_WRITERS = "load 1, load 2, log 1, done 1"
SOUGHT = {
    "another writer's block keeps no operation, as at a failover": (
        f"{TWO_WRITERS}, done=done 2, accuses done"
    ),
    "its own block keeps an operation beside another": (
        f"{TWO_WRITERS}, log-elsewhere 2, done 2, accuses"
    ),
    "a group since it began may hold an operation": (
        f"{TWO_WRITERS}, submit uberblock:6, done 2, accuses"
    ),
    "a group from before it holds no operation": (
        f"write uberblock:5, flush, {TWO_WRITERS}, done=done 2, accuses done"
    ),
    "data elsewhere in the pool may be those of an operation": (
        f"{TWO_WRITERS}, write pointing-log, flush, done 2, accuses"
    ),
    "a log that shows no data may hold any operation, and a split block may hold anything": (
        f"load 1, log-zeroes, done 1, accuses, write split-log, {TWO_WRITERS}, done 2, accuses"
    ),
}


@pytest.mark.parametrize("scene", SOUGHT.values(), ids=SOUGHT)
def test_an_acknowledged_operation_is_in_a_covered_write(scene: str, story: Story) -> None:
    played(story, scene, invariant=Invariant.ACKNOWLEDGED_IS_DURABLE)
    assert lacking(story) == []


@pytest.mark.parametrize("more", [{"op": "unlink"}, {"what": {"x": 1}}])
def test_an_operation_without_load_blocks_is_not_sought(
    story: Story, more: dict[str, object]
) -> None:
    two_writers(story, more=more)
    story.is_done(2)
    assert absent(story) == []


def test_a_second_copy_of_the_data_may_be_an_operations_own(story: Story) -> None:
    two_writers(story)
    done = story.is_done(2)
    assert absent(story) == [done]
    assert absent(story, writes_once=False) == []

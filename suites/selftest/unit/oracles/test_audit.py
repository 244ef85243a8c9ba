"""The audit: a missing flush is found at the uberblock or acknowledgement that needed it.

The phases that a load alone seldom reaches, and trims over blocks that the pool needs.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.audit_story import (
    BLOCK,
    METADATA,
    Story,
    log_block,
    uberblock,
    zil_block,
)
from suites.selftest.unit.made_records import trial_record
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs, accused_of
from torture.choices.experiments.protocol import Sight
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, Phase
from torture.facts.recording.intent_log import TXG_ROLES, Role, role_of, txg_of
from torture.oracles.audit.invariants import Finding, Invariant
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.scoring.detection import seen_by

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "writes.json"


@pytest.mark.parametrize("name", json.loads(RECORDED.read_text()))
def test_a_real_writes_role_is_detected(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())[name]
    head, tail = (bytes.fromhex(recorded[part]) for part in ("head", "tail"))
    payload = (
        head + bytes(recorded["length"] - len(head) - len(tail)) + tail
        if recorded["length"] > len(head)
        else head
    )
    assert role_of(payload) is Role(name.split("-")[0])
    if role_of(payload) is Role.UBERBLOCK:
        assert 0 < txg_of(payload) < 1000


def test_a_heartbeat_ends_no_group_and_needs_no_flush(story: Story) -> None:
    """It repeats the uberblock of the last group while the next group is being written."""
    recorded = json.loads(RECORDED.read_text())["heartbeat"]
    head, tail = (bytes.fromhex(recorded[part]) for part in ("head", "tail"))
    heartbeat = head + bytes(recorded["length"] - len(head) - len(tail)) + tail
    beat, last = txg_of(heartbeat), uberblock(txg_of(heartbeat) + 1)
    assert role_of(last) is Role.UBERBLOCK
    story.write(last)
    story.flush()
    story.write(METADATA)
    story.write(heartbeat)
    story.write(METADATA)
    assert beat > 0
    assert story.findings() == []
    story.write(uberblock(beat))
    assert {one.invariant for one in story.findings()} >= {Invariant.UBERBLOCKS_ASCEND}


@pytest.mark.parametrize("length", [0, 7, 8, 151, 152, 183])
def test_a_truncated_write_counts_as_one_of_a_txg(length: int) -> None:
    assert role_of(zil_block()[:length]) in TXG_ROLES
    assert role_of(uberblock(7)[: min(length, 23)]) in TXG_ROLES


GROUPS = {
    "a txg that is flushed before its uberblock is durable": (
        "write data, write data on b, flush, flush b, write uberblock:5, write uberblock:5 on b, "
        "accuses"
    ),
    "a write that no flush covers is found once a txg": (
        "lost=write data, seen=write uberblock:5, write uberblock:5 on b, accuses seen lost"
    ),
    "a later txg does not accuse it again": (
        "lost=write data, seen=write uberblock:5, write uberblock:5 on b, flush, "
        "write uberblock:6, accuses seen lost"
    ),
    "metadata have to be covered as well": (
        "write data, lost=write metadata on b, flush, seen=write uberblock:5, accuses seen lost"
    ),
    "a flush covers only writes completed before it began": (
        "lost=submit data, begun=flush begins, end lost, end begun, seen=write uberblock:5, "
        "accuses seen lost"
    ),
    "without an uberblock nothing is due": "late=submit data, flush, end late, accuses",
    "a flush that is not completed or failed covers nothing": (
        "lost=write data, failing flush, flush begins, seen=write uberblock:5, accuses seen lost"
    ),
    "a flush of another disk covers nothing": (
        "lost=write data on b, flush, seen=write uberblock:5, accuses seen lost"
    ),
    "a write under way is not durable": (
        "lost=submit data, flush, seen=write uberblock:5, accuses seen lost"
    ),
    "a write that failed never happened": "x=submit data, fail x, write uberblock:5, accuses",
    "a write with fua covers itself": "write data fua, write uberblock:5, accuses",
    "the log of later transactions need not be durable": "write zil, write uberblock:5, accuses",
}


@pytest.mark.parametrize("scene", GROUPS.values(), ids=GROUPS)
def test_a_group_is_durable_before_its_uberblock(scene: str, story: Story) -> None:
    Stage(story, accused=accused_of(Invariant.TXG_IS_DURABLE)).play(scene)
    assert story.audited()[1:] == (0, len(set(re.findall(r"uberblock:\d", scene))))


def test_uberblocks_of_a_disk_ascend(story: Story) -> None:
    for txg, disk in ((5, 0), (6, 1), (5, 1), (6, 0)):
        last = story.write(uberblock(txg), disk=disk)
    [finding] = story.findings()
    assert finding == Finding(invariant=Invariant.UBERBLOCKS_ASCEND, event=last - 2)


ACKNOWLEDGED = {
    "an acknowledgement needs a block of the log that is covered": (
        "begin 1, lost=write zil, seen=done 1, accuses seen lost"
    ),
    "the next one has a covered block": (
        "begin 1, lost=write zil, seen=done 1, begin 2, write zil, flush, done 2, accuses seen lost"
    ),
    "a block covered before an operation began does not cover it": (
        "write zil, flush, begin 1, seen=done 1, accuses seen"
    ),
    "an uberblock that no flush covers makes no operation durable": (
        "begin 1, write data, flush, write uberblock:5, seen=done 1, accuses seen"
    ),
    "a committed txg makes an operation durable too": (
        "begin 1, write data, flush, write uberblock:5, seen=done 1, flush, begin 2, "
        "write uberblock:6, flush, done 2, accuses seen"
    ),
    "another writer's flush may have committed all that an operation settles": (
        "begin 1 lazy-transaction, done 1, write zil, flush, settle 2, done 2, accuses, "
        "begin 3 lazy-transaction, done 3, settle 4, unfounded=done 4, accuses unfounded"
    ),
}


@pytest.mark.parametrize("scene", ACKNOWLEDGED.values(), ids=ACKNOWLEDGED)
def test_an_acknowledged_operation_is_durable(scene: str, story: Story) -> None:
    """With `settle` for an operation that makes all before it durable."""
    verbs: Verbs = {"settle": lambda seq: story.begins(int(seq), kind="transaction", settle=True)}
    Stage(story, accused=accused_of(Invariant.ACKNOWLEDGED_IS_DURABLE), verbs=verbs).play(scene)
    assert story.audited()[1] == scene.count("done") - scene.count("lazy")


@pytest.mark.parametrize(("what", "writer"), [({"settle": True}, 1), ({"settle": 1}, 0), ({}, 0)])
def test_only_a_settling_operation_looks_back_and_at_its_own_writer(
    story: Story, what: dict[str, object], writer: int
) -> None:
    story.begins(1, kind="lazy-transaction")
    story.write(zil_block())
    story.flush()
    line = {"seq": 2, "writer": writer, "op": "transaction", "file": 0, "blocks": [], "size": 0}
    story.says(event="begin", what=what, **line)
    unfounded = story.is_done(2)
    wanted = Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=unfounded, uncovered=())
    assert story.findings() == [wanted]


def test_with_sync_disabled_no_acknowledgement_is_audited(story: Story) -> None:
    story.begins(1)
    story.is_done(1)
    assert story.findings(sync=Sync.DISABLED) == []
    assert story.audited(sync=Sync.DISABLED)[1] == 1


def test_an_unsynced_write_is_no_promise(story: Story) -> None:
    story.begins(1, kind="scribble")
    story.is_done(1)
    assert story.audited() == ((), 0, 0)


def test_events_after_the_cut_are_ignored(story: Story) -> None:
    story.begins(1)
    last = story.write(zil_block())
    story.is_done(1)
    assert story.audited(cut=last) == ((), 0, 0)


def test_a_finding_breaks_every_guarantee_and_is_reported() -> None:
    found = Finding(invariant=Invariant.TXG_IS_DURABLE, event=17, uncovered=(11, 13))
    words = "txg-is-durable at event 17: 2 writes not covered, first 11"
    assert found.in_words() == words
    document = AuditDocument(acknowledgements=3, txgs=1, broken=1, findings=(words,), took_ms=4)
    cut = CutDocument(audit=document)
    assert CutDocument.from_json(json.loads(json.dumps(cut.as_json()))) == cut
    for verdict in (Verdict.INTACT, Verdict.ROLLED_BACK, Verdict.INCONCLUSIVE):
        record = trial_record(
            trial="t", cell="c", axes={}, seed=1, verdict=verdict, guarantee="loses", cut=cut
        )
        assert all(record.breaks(guarantee) for guarantee in Guarantee)


def test_a_finding_in_the_log_of_the_nas_that_came_back_counts_as_much() -> None:
    before = AuditDocument(acknowledgements=3, txgs=1, broken=0, uncommitted_ms=7)
    after = AuditDocument(acknowledgements=2, completions=4, broken=1, findings=("x",), under_way=1)
    cut = CutDocument(audit=before, second=CutDocument(t_ms=1.0, audit=after))
    assert cut.audited == AuditDocument(
        acknowledgements=5, completions=4, txgs=1, broken=1, findings=("x",), uncommitted_ms=7
    )
    record = trial_record(
        trial="t", cell="c", axes={}, seed=1, verdict=Verdict.INTACT, guarantee="loses", cut=cut
    )
    assert record.breaks(Guarantee.LOSES)
    assert not replace(record, cut=replace(cut, second=None)).breaks(Guarantee.LOSES)
    assert seen_by(record) == {Sight.AUDIT}
    assert record.cut.audited.acknowledgements == 5


PHASES = {
    "a whole round: the log, its flush, the acknowledgement, a transaction group, its uberblock": (
        "is idle, block=submit zil, is zil-written, end block, is zil-written, flush, "
        "is zil-flushed, begin 1, is idle, write data, is txg-written, flushed=flush begins, "
        "is before-uberblock, end flushed, is before-uberblock, write uberblock:5, "
        "is uberblock-written, flush, is idle"
    ),
    "the phase nearest to the uberblock is reported": (
        "write zil, write data, is txg-written, write uberblock:5, is uberblock-written"
    ),
    "metadata, a label and several log blocks are phases": (
        "write zil at 0, is zil-written, write zil at 4K, is zil-several, flush, "
        "submit zil at 0, is zil-reused, write data, is txg-written, write metadata, "
        "is metadata-written, write label, is label-written, write uberblock:5, "
        "is uberblock-written"
    ),
    "the place of a block of the log is its disk's": (
        "write zil at 0, flush, write zil at 0 on b, is zil-written"
    ),
    "the flush of a block of the log is no end of a txg": (
        "write zil on b, flush b, is zil-flushed, write data, flush b, is txg-written"
    ),
    "a mirror has each block of the log twice and that is not several": (
        "write zil at 0, write zil at 0 on b, is zil-written, submit zil at 8K on b, is zil-several"
    ),
    "a place overwritten by another role is not reused": (
        "write zil at 0, write zil at 1, write metadata at 0, gone=trim 1 at 1, end gone, flush, "
        "write uberblock:5, flush, write zil at 0, is zil-written, flush, write zil at 1, "
        "is zil-written, flush"
    ),
    "trimming lasts until a flush of its disk covers the trim": (
        "write zil, flush, begun=trim 1 at 1, is trimming, flush, end begun, is trimming, "
        "flush b, is trimming, flush, is zil-flushed"
    ),
    "trimming precedes a txg's phases and follows its end": (
        "write metadata, gone=trim 1 at 1, end gone, is trimming, write label, is label-written, "
        "write uberblock:5, is uberblock-written"
    ),
    "a flush with more of the txg behind it is not the last one before the uberblock": (
        "write metadata, flushed=flush begins, is before-uberblock, submit metadata at 1, "
        "is metadata-written, end flushed, is metadata-written"
    ),
    "the moment behind an acknowledgement, where a lying flush shows, is a phase": (
        "begin 1, write zil, flush, done 1, is acknowledged, begin 2, submit zil, "
        "is acknowledged, submit metadata, is metadata-written"
    ),
    "it is over 3 ms later": "begin 1, write zil, flush, done 1, later 3, begin 2, is idle",
}


@pytest.mark.parametrize("scene", PHASES.values(), ids=PHASES)
def test_the_phase_is_that_of_the_last_event(scene: str, story: Story) -> None:
    Stage(story).play(scene)


MIB = 1 << 20


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


@pytest.mark.parametrize(
    ("tells", "phase"), [(True, Phase.METADATA_WRITTEN), (False, Phase.TXG_WRITTEN)]
)
def test_without_distinct_lengths_metadata_and_data_are_one_phase(
    story: Story, tells: bool, phase: Phase
) -> None:
    story.write(METADATA)
    assert story.phase(length_shows_metadata=tells) is phase


# Trims and zeroes over blocks that the pool needs are found; over free space they are not.

TXG = 22
"""Of the records that `log_block` makes."""
AREA = 256 * 1024
LABEL = 4 * AREA
"""Where a disk's first label begins."""
UBERBLOCK_AT = 128 * 1024


@pytest.fixture
def pool(tmp_path: Path) -> Story:
    """A pool with a label whose uberblock is known."""
    pool = Story(folder=tmp_path)
    committed(pool, 5)
    return pool


def committed(pool: Story, txg: int) -> None:
    pool.flush()
    pool.write(uberblock(txg), offset=LABEL + UBERBLOCK_AT + txg * 1024)
    pool.flush()


def taking(pool: Story) -> list[int]:
    return [x.event for x in pool.findings() if x.invariant is Invariant.TRIMMED_IS_FREE]


MERGED = bytearray(log_block((0, 512)))
struct.pack_into("<Q", MERGED, 184 + 16, TXG + 5)
LOGS = {
    "log": log_block((0, 512)),
    "empty-log": log_block(),
    "merged-logs": log_block((0, 512)) + MERGED,
    "split-log": log_block((0, 512), is_split=True),
}
TRIMS = {
    "the log must not be trimmed before its group is committed": (
        f"write log at 8, one=trim 512B at 8+512B, two=zero 8+1B at 0, commit {TXG - 1}, "
        f"three=trim 1 at 8, commit {TXG}, trim 1 at 8, accuses one two three"
    ),
    "a trim beside the log is no finding": (
        "write log at 8, trim 1 at 7, trim 1 at 8+4K, trim 1 at 8 on b, trim 0 at 8, accuses"
    ),
    "the log of a committed group and one without records may be trimmed": (
        f"commit {TXG}, write log at 8, write empty-log at 9, trim 2 at 8, accuses"
    ),
    "of merged blocks the one that is free first counts": (
        f"write merged-logs at 8, commit {TXG}, trim 2 at 8, accuses"
    ),
    "with a split log block no trim is reported": "write split-log at 8, trim 1 at 8, accuses",
}


@pytest.mark.parametrize("scene", TRIMS.values(), ids=TRIMS)
def test_a_trim_takes_no_block_of_the_log_that_is_needed(scene: str, pool: Story) -> None:
    commit: Verbs = {"commit": lambda txg: committed(pool, int(txg))}
    Stage(pool, accused=taking, contents=LOGS, verbs=commit).play(scene)


@pytest.mark.parametrize(
    ("offset", "length", "is_taken"),
    [
        (LABEL, 512, True),
        (LABEL + AREA - 512, 512, True),
        (LABEL + AREA, AREA, False),
        (LABEL - 512, 512, False),
        (0, 64 * MIB, True),
    ],
)
def test_a_label_must_not_be_trimmed(
    pool: Story, offset: int, length: int, *, is_taken: bool
) -> None:
    seen = [pool.trim(offset=offset, length=length), pool.zero(offset=offset, length=length)]
    pool.trim(offset=offset, length=length, disk=1)
    assert taking(pool) == (seen if is_taken else [])


def test_a_label_of_a_disk_that_is_no_part_of_the_pool_may_be(tmp_path: Path) -> None:
    pool = Story(folder=tmp_path)
    pool.write(uberblock(0), offset=LABEL + UBERBLOCK_AT)
    pool.write(BLOCK, offset=LABEL)
    pool.trim(offset=LABEL, length=AREA)
    assert taking(pool) == []

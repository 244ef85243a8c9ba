"""The audit: a missing flush is found at the uberblock or acknowledgement that needed it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, label, uberblock, zil_block
from suites.selftest.unit.made_records import trial_record
from torture.choices.experiments.protocol import Sight
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.phase import Phase
from torture.facts.recording.roles import TXG_ROLES, Role, role_of, txg_of
from torture.oracles.audit.invariants import Finding, Invariant
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.detection import seen_by

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "writes.json"


def not_durable(event: int, *uncovered: int) -> list[Finding]:
    return [Finding(invariant=Invariant.TXG_IS_DURABLE, event=event, uncovered=uncovered)]


def unacknowledgeable(event: int, *uncovered: int) -> list[Finding]:
    return [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=event, uncovered=uncovered)]


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


@pytest.mark.parametrize("length", [0, 7, 8, 151, 152, 183])
def test_a_truncated_write_counts_as_one_of_a_txg(length: int) -> None:
    assert role_of(zil_block()[:length]) in TXG_ROLES
    assert role_of(uberblock(7)[: min(length, 23)]) in TXG_ROLES


def test_a_txg_that_is_flushed_before_its_uberblock_is_durable(story: Story) -> None:
    story.write(BLOCK)
    story.write(BLOCK, disk=1)
    story.flush()
    story.flush(disk=1)
    for disk in (0, 1):
        story.write(uberblock(5), disk=disk)
    assert story.audited() == ((), 0, 1)


def test_a_write_that_no_flush_covers_is_found_once_a_txg(story: Story) -> None:
    lost = story.write(BLOCK)
    first = story.write(uberblock(5))
    story.write(uberblock(5), disk=1)
    assert story.findings() == not_durable(first, lost)
    story.flush()
    story.write(uberblock(6))
    assert story.findings() == not_durable(first, lost)


def test_metadata_have_to_be_covered_as_well(story: Story) -> None:
    data = story.write(BLOCK)
    metadata = story.write(METADATA, disk=1)
    story.flush()
    first = story.write(uberblock(5))
    assert story.findings() == not_durable(first, metadata)
    assert data not in story.findings()[0].uncovered


def test_a_flush_covers_only_writes_completed_before_it_began(story: Story) -> None:
    late = story.submit(BLOCK)
    flush = story.begin_flush()
    story.complete(late)
    story.complete(flush)
    assert story.findings() == []
    seen = story.write(uberblock(5))
    assert story.findings() == not_durable(seen, late)


def test_a_flush_that_is_not_completed_or_failed_covers_nothing(story: Story) -> None:
    lost = story.write(BLOCK)
    story.flush(error=5)
    story.begin_flush()
    seen = story.write(uberblock(5))
    assert story.findings() == not_durable(seen, lost)


def test_a_flush_of_another_disk_covers_nothing(story: Story) -> None:
    lost = story.write(BLOCK, disk=1)
    story.flush(disk=0)
    seen = story.write(uberblock(5))
    assert story.findings() == not_durable(seen, lost)


def test_a_write_under_way_is_not_durable(story: Story) -> None:
    lost = story.submit(BLOCK)
    story.flush()
    seen = story.write(uberblock(5))
    assert story.findings() == not_durable(seen, lost)


def test_a_write_that_failed_never_happened(story: Story) -> None:
    story.complete(story.submit(BLOCK), error=5)
    story.write(uberblock(5))
    assert story.findings() == []


def test_a_write_with_fua_covers_itself(story: Story) -> None:
    story.write(BLOCK, fua=True)
    story.write(uberblock(5))
    assert story.findings() == []


def test_the_log_of_later_transactions_need_not_be_durable(story: Story) -> None:
    story.write(zil_block())
    story.write(uberblock(5))
    assert story.findings() == []


def test_uberblocks_of_a_disk_ascend(story: Story) -> None:
    for txg, disk in ((5, 0), (6, 1), (5, 1), (6, 0)):
        last = story.write(uberblock(txg), disk=disk)
    [finding] = story.findings()
    assert finding == Finding(invariant=Invariant.UBERBLOCKS_ASCEND, event=last - 2)


def test_an_acknowledgement_needs_a_block_of_the_log_that_is_covered(story: Story) -> None:
    story.begins(1)
    block = story.write(zil_block())
    done = story.is_done(1)
    assert story.findings() == unacknowledgeable(done, block)
    story.begins(2)
    story.write(zil_block())
    story.flush()
    story.is_done(2)
    assert story.findings() == unacknowledgeable(done, block)
    assert story.audited()[1] == 2


def test_a_block_covered_before_an_operation_began_does_not_cover_it(story: Story) -> None:
    story.write(zil_block())
    story.flush()
    story.begins(1)
    done = story.is_done(1)
    assert story.findings() == unacknowledgeable(done)


def test_another_writers_flush_may_have_committed_all_that_an_operation_settles(
    story: Story,
) -> None:
    story.begins(1, kind="lazy-transaction")
    story.is_done(1)
    story.write(zil_block())
    story.flush()
    story.begins(2, kind="transaction", settle=True)
    story.is_done(2)
    assert story.findings() == []
    story.begins(3, kind="lazy-transaction")
    story.is_done(3)
    story.begins(4, kind="transaction", settle=True)
    unfounded = story.is_done(4)
    assert story.findings() == unacknowledgeable(unfounded)


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
    assert story.findings() == unacknowledgeable(unfounded)


def test_a_committed_txg_makes_an_operation_durable_too(story: Story) -> None:
    story.begins(1)
    story.write(BLOCK)
    story.flush()
    story.write(uberblock(5))
    unflushed = story.is_done(1)
    assert story.findings() == unacknowledgeable(unflushed)
    story.flush()
    story.begins(2)
    story.write(uberblock(6))
    story.flush()
    story.is_done(2)
    assert story.findings() == unacknowledgeable(unflushed)


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


def test_the_phase_is_that_of_the_last_event(story: Story) -> None:
    """A whole round: the log, its flush, the acknowledgement, a transaction group and its uberblock."""
    phases = []

    def phase() -> None:
        phases.append(story.phase())

    phase()
    block = story.submit(zil_block())
    phase()
    story.complete(block)
    phase()
    story.flush()
    phase()
    story.begins(1)
    phase()
    story.write(BLOCK)
    phase()
    flush = story.begin_flush()
    phase()
    story.complete(flush)
    phase()
    story.write(uberblock(5))
    phase()
    story.flush()
    phase()
    assert phases == [
        Phase.IDLE, Phase.ZIL_WRITTEN, Phase.ZIL_WRITTEN, Phase.ZIL_FLUSHED, Phase.IDLE,
        Phase.TXG_WRITTEN, Phase.BEFORE_UBERBLOCK, Phase.BEFORE_UBERBLOCK,
        Phase.UBERBLOCK_WRITTEN, Phase.IDLE,
    ]  # fmt: skip


def test_the_phase_nearest_to_the_uberblock_is_reported(story: Story) -> None:
    story.write(zil_block())
    story.write(BLOCK)
    assert story.phase() is Phase.TXG_WRITTEN
    story.write(uberblock(5))
    assert story.phase() is Phase.UBERBLOCK_WRITTEN


def test_metadata_a_label_and_several_log_blocks_are_phases(story: Story) -> None:
    story.write(zil_block(), offset=0)
    assert story.phase() is Phase.ZIL_WRITTEN
    story.write(zil_block(), offset=4096)
    assert story.phase() is Phase.ZIL_SEVERAL
    story.flush()
    story.submit(zil_block(), offset=0)
    assert story.phase() is Phase.ZIL_REUSED
    story.write(BLOCK)
    assert story.phase() is Phase.TXG_WRITTEN
    story.write(METADATA)
    assert story.phase() is Phase.METADATA_WRITTEN
    story.write(label())
    assert story.phase() is Phase.LABEL_WRITTEN
    story.write(uberblock(5))
    assert story.phase() is Phase.UBERBLOCK_WRITTEN


def test_the_place_of_a_block_of_the_log_is_its_disks(story: Story) -> None:
    story.write(zil_block(), offset=0)
    story.flush()
    story.write(zil_block(), offset=0, disk=1)
    assert story.phase() is Phase.ZIL_WRITTEN


def test_the_flush_of_a_block_of_the_log_is_no_end_of_a_txg(story: Story) -> None:
    story.write(zil_block(), disk=1)
    story.flush(disk=1)
    assert story.phase() is Phase.ZIL_FLUSHED
    story.write(BLOCK)
    story.flush(disk=1)
    assert story.phase() is Phase.TXG_WRITTEN, "the flush was another disk's"

"""The audit: a NAS that does not commit, the time a cut may roll back, and the blocks of an operation."""

from __future__ import annotations

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, uberblock, zil_block
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import load_sectors_in
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.invariants import Finding, Invariant
from vmimages.client.load.blocks import Encoder


def test_a_nas_that_never_commits_is_detected_by_its_acknowledgements(story: Story) -> None:
    story.write(BLOCK)
    for number in range(1, 20):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        last = story.is_done(number, later_ms=500)
    late = [find for find in story.findings() if find.invariant is Invariant.TXG_IS_IN_TIME]
    assert len(late) == 1, "said once, not at every acknowledgement"
    assert late[0].event <= last


@pytest.mark.parametrize(("late_ms", "is_late"), [(8_000, True), (9_000, True), (63_000, False)])
def test_a_nas_that_is_set_to_wait_is_late_later(story: Story, late_ms: int, is_late: bool) -> None:
    story.write(BLOCK)
    for number in range(1, 21):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        story.is_done(number, later_ms=500)
    assert bool(story.findings_of_groups(late_ms=late_ms)) is is_late


def test_one_that_commits_every_five_seconds_is_in_time(story: Story) -> None:
    for number in range(1, 40):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        story.is_done(number, later_ms=500)
        if number % 10 == 0:
            story.write(METADATA)
            story.flush()
            story.write(uberblock(number))
    assert story.findings() == []


def test_a_pause_of_the_nas_is_no_delay(story: Story) -> None:
    """A NAS that was stopped for a minute had no client to acknowledge operations to."""
    for number in (1, 2, 3):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        story.is_done(number, later_ms=60_000)
    assert story.findings() == []


def test_uncommitted_time_counts_from_the_begin_of_the_last_committed_txg(
    story: Story,
) -> None:
    assert story.uncommitted_ms() is None
    story.write(BLOCK, later_ms=1_000)
    story.flush()
    story.write(uberblock(5), later_ms=100)
    assert story.uncommitted_ms() is None, "its uberblock is not covered"
    story.flush()
    assert story.uncommitted_ms() == 100
    story.write(BLOCK, later_ms=2_000)
    story.write(uberblock(6), later_ms=50)
    assert story.uncommitted_ms() == 2_150
    story.write(uberblock(6), disk=1, later_ms=400)
    story.flush(disk=1)
    assert story.uncommitted_ms() == 450, "a copy is of the same transaction group"


def logged(*operations: int) -> bytes:
    """A block of the intent log that holds a sector of each of these operations."""
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return zil_block() + b"".join(sectors)


def test_the_blocks_that_hold_an_acknowledged_operation_must_be_covered(
    story: Story,
) -> None:
    """Another operation's block, covered in the meantime, is no proof."""
    story.begins(1)
    story.begins(2)
    own = story.write(logged(1), disk=0)
    story.write(logged(2), disk=1)
    story.flush(disk=1)
    done = story.is_done(1)
    story.is_done(2)
    wanted = [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,))]
    assert story.findings(sync=Sync.ALWAYS) == wanted
    assert story.findings(sync=Sync.STANDARD) == wanted
    assert story.findings(sync=Sync.DISABLED) == []


@pytest.mark.parametrize(
    ("syncs", "is_owed"), [([], False), ([["fsync", 7]], False), ([["fsync", 12]], True)]
)
def test_acknowledging_a_name_that_needs_no_sync_guarantees_no_data(
    story: Story, syncs: list[list[object]], is_owed: bool
) -> None:
    """Over NFS; another writer's call may have it in the log and on its way by then."""
    story.begins(1, "transaction", do="create", whom=12, syncs=syncs, names_are_stable=True)
    story.write(zil_block())
    story.flush()
    own = story.write(logged(1))
    done = story.is_done(1)
    wanted = [Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,))]
    assert story.findings() == (wanted if is_owed else [])
    story.begins(2, "transaction", do="mkdir", whom=14, syncs=[], names_are_stable=True)
    unlogged = story.is_done(2)
    assert unlogged in [finding.event for finding in story.findings()]


@pytest.mark.parametrize("kind", ["create", "replace", "append", "overwrite", "dsync"])
def test_with_volatile_names_data_are_guaranteed_all_the_same(story: Story, kind: str) -> None:
    """As over SMB: what is in a file is flushed, its name is not."""
    story.begins(1, kind)
    own = story.write(logged(1))
    done = story.is_done(1)
    story.begins(2, kind)
    story.write(logged(2))
    story.flush()
    story.is_done(2)
    story.begins(3, kind)
    unlogged = story.is_done(3)
    assert story.findings_of_data() == story.findings()
    assert [(found.event, found.uncovered) for found in story.findings_of_data()] == [
        (done, (own,)),
        (unlogged, ()),
    ]


def test_with_volatile_names_a_name_alone_is_not_guaranteed(story: Story) -> None:
    story.begins(1, "unlink")
    removed = story.is_done(1)
    assert [found.event for found in story.findings()] == [removed]
    assert story.findings_of_data() == []


def test_logging_an_operation_again_after_its_acknowledgement_is_no_finding(story: Story) -> None:
    story.begins(1)
    story.write(logged(1))
    story.flush()
    story.is_done(1)
    story.write(logged(1))
    assert story.findings(sync=Sync.ALWAYS) == []


def test_without_classified_content_only_the_marks_count(story: Story) -> None:
    story.begins(1)
    story.write(zil_block())
    story.is_done(1)
    story.begins(2)
    whole = audit(story.recorded(), cut=len(story.events) - 1, terms=AuditTerms(sync=Sync.ALWAYS))
    assert (len(whole.findings), whole.acknowledgements) == (1, 1)
    assert whole.phase is not None
    marks = whole.marks_only()
    assert (marks.findings, marks.acknowledgements, marks.txgs) == ((), 0, 0)
    assert (marks.phase, marks.completions, marks.uncommitted_ms) == (None, None, None)
    assert (marks.under_way, marks.at_risk and marks.at_risk.lately) == (1, 1)


def test_where_data_is_written_twice_a_missing_flush_is_still_one(story: Story) -> None:
    story.begins(1)
    own = story.write(logged(1))
    done = story.is_done(1)
    terms = AuditTerms(sync=Sync.ALWAYS, writes_once=False)
    found = audit(story.recorded(), cut=done, terms=terms).findings
    assert found == (
        Finding(invariant=Invariant.ACKNOWLEDGED_IS_DURABLE, event=done, uncovered=(own,)),
    )


def test_the_guests_blocks_are_known_by_their_headers() -> None:
    """The guest's load is a separate program: its headers are compared with ours."""

    def operations_in(payload: bytes) -> set[int]:
        return {operation for _, (operation, _, _) in load_sectors_in(payload)}

    written = Encoder(7).block(file=1, seq=3, index=0)
    assert operations_in(bytes(100) + written) == {3}
    assert operations_in(written + Encoder(7).block(file=2, seq=5, index=1)) == {3, 5}
    assert operations_in(written[:20]) == set()
    assert operations_in(bytes(4096)) == set()

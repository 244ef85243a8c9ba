"""The cut with the surest loss confirms a finding; an impossible cut is never chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, log_block, uberblock, zil_block
from torture.facts.axes.sync import Sync
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.model import survivors, writes_until
from torture.oracles.audit.confirmable import Confirmable, confirmable
from torture.oracles.audit.invariants import Invariant

MIB = 1 << 20
VOLATILE = Persistence.VOLATILE
EMPTY_HANDED = DiskState(policy=Policy.FLUSHED)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """One operation was acknowledged, as it should be."""
    story = Story(folder=tmp_path)
    story.acknowledges(1)
    return story


def chosen(
    story: Story,
    *,
    sync: Sync = Sync.STANDARD,
    kept: Persistence = VOLATILE,
    client_survives: bool = False,
) -> Confirmable | str:
    disks = [ShelfDisk(serial=name, size_mib=1, persistence=kept) for name in ("a", "b")]
    found = story.audit_of_all(sync=sync)
    return confirmable(found, story.recorded(), disks=disks, client_survives=client_survives)


def made(story: Story, **how: object) -> Confirmable:
    choice = chosen(story, **how)  # type: ignore[arg-type]
    assert isinstance(choice, Confirmable), choice
    return choice


def acknowledged_without_a_flush(story: Story, operation: int) -> tuple[int, int]:
    """The mark, and the block of the log that no flush covered by then."""
    story.begins(operation)
    block = story.write(zil_block())
    return story.is_done(operation), block


def test_an_acknowledgement_is_cut_at_its_event_without_uncovered_writes(story: Story) -> None:
    covered = writes_until(story.events, disk=0, cut=len(story.events) - 1)
    done, block = acknowledged_without_a_flush(story, 2)
    story.flush()
    choice = made(story)
    assert (choice.finding.invariant, choice.event) == (Invariant.ACKNOWLEDGED_IS_DURABLE, done)
    assert choice.disks == {"a": EMPTY_HANDED, "b": EMPTY_HANDED}
    left = survivors(
        story.events, disk=0, sector=512, view=choice.disks["a"], cut=choice.event, seed=1
    )
    assert left == {block: ()}
    [first] = covered
    assert first.covered


def test_of_several_the_last_one_is_chosen(story: Story) -> None:
    for operation in (2, 3, 4):
        done, _ = acknowledged_without_a_flush(story, operation)
        story.flush()
    assert made(story).event == done


def test_an_acknowledgement_is_preferred_to_less_sure_findings(story: Story) -> None:
    done, _ = acknowledged_without_a_flush(story, 2)
    story.write(BLOCK)
    story.write(uberblock(5))
    story.completes(story.client_writes(MIB))
    assert made(story, sync=Sync.ALWAYS).event == done


def test_an_uberblock_survives_without_the_writes_that_it_needs(story: Story) -> None:
    lost = story.write(BLOCK, disk=1)
    alike = story.write(BLOCK)
    under_way = story.submit(uberblock(5))
    choice = made(story, client_survives=True)
    assert (choice.finding.invariant, choice.event) == (Invariant.TXG_IS_DURABLE, under_way)
    kept = DiskState(policy=Policy.EXPLICIT, survivors=(under_way,))
    assert choice.disks == {"a": kept, "b": EMPTY_HANDED}
    for disk, view, left in (
        (0, kept, {alike: (), under_way: (0, 1, 2)}),
        (1, EMPTY_HANDED, {lost: ()}),
    ):
        there = survivors(story.events, disk=disk, sector=512, view=view, cut=choice.event, seed=1)
        assert there == left


def test_a_request_followed_by_an_acknowledgement_is_cut_right_before_it_was_kept(
    story: Story,
) -> None:
    story.begins(2)
    write = story.client_writes(MIB)
    story.write(zil_block())
    story.flush()
    story.write(log_block((MIB, 4096)))
    story.completes(write)
    story.is_done(2)
    story.begins(3)
    story.write(zil_block(), fua=True)
    story.is_done(3)
    made_up_for = story.begin_flush()
    story.complete(made_up_for)
    story.acknowledges(4)
    choice = made(story, sync=Sync.ALWAYS)
    assert choice.finding.invariant is Invariant.COMPLETED_IS_DURABLE
    assert choice.finding.event < choice.event == made_up_for


def test_a_request_without_a_later_acknowledgement_is_cut_at_its_completion(
    story: Story,
) -> None:
    write = story.client_writes(MIB)
    block = story.write(log_block((MIB, 4096)))
    story.completes(write)
    story.flush()
    story.acknowledges(2)
    choice = made(story, sync=Sync.ALWAYS)
    assert choice.event == choice.finding.event == block + 1


def test_a_request_before_an_acknowledgement_is_surer_than_a_later_one_before_none(
    story: Story,
) -> None:
    write = story.client_writes(MIB)
    story.write(log_block((MIB, 4096)))
    story.completes(write)
    story.begins(2)
    story.write(zil_block(), fua=True)
    done = story.is_done(2)
    story.flush()
    later = story.client_writes(2 * MIB)
    story.write(log_block((2 * MIB, 4096)))
    story.completes(later)
    assert made(story, sync=Sync.ALWAYS).event == done + 1


def acknowledged_in_between(story: Story, operation: int) -> int:
    """An operation that is acknowledged correctly, and whose flush covers only its own block."""
    story.begins(operation)
    story.write(zil_block(), fua=True)
    return story.is_done(operation)


def test_an_uberblock_is_surer_than_a_later_request(story: Story) -> None:
    story.write(BLOCK)
    early = story.submit(uberblock(5))
    story.completes(story.client_writes(MIB))
    acknowledged_in_between(story, 2)
    assert made(story, sync=Sync.ALWAYS).event == early


def test_an_older_log_block_does_not_make_up_for_a_request(story: Story) -> None:
    story.write(log_block((MIB, 4096)), fua=True)
    story.completes(story.client_writes(MIB))
    acknowledged_in_between(story, 2)
    choice = made(story, sync=Sync.ALWAYS)
    assert choice.event == len(story.events) - 1, "that is the drawn cut"


def test_a_commit_makes_up_for_a_request(story: Story) -> None:
    story.completes(story.client_writes(MIB))
    before = acknowledged_in_between(story, 2)
    story.write(uberblock(5), fua=True)
    acknowledged_in_between(story, 3)
    assert made(story, sync=Sync.ALWAYS).event == before + 1


def test_a_request_is_made_up_for_when_all_of_it_is(story: Story) -> None:
    story.completes(story.client_writes(MIB, length=1024))
    story.write(log_block((MIB, 512)), fua=True)
    between = acknowledged_in_between(story, 2)
    story.write(log_block((MIB + 512, 512)), fua=True)
    acknowledged_in_between(story, 3)
    assert made(story, sync=Sync.ALWAYS).event == between + 1


def test_a_surviving_client_confirms_no_request(story: Story) -> None:
    story.completes(story.client_writes(MIB))
    assert "client survived" in str(chosen(story, sync=Sync.ALWAYS, client_survives=True))
    done, _ = acknowledged_without_a_flush(story, 2)
    assert made(story, sync=Sync.ALWAYS, client_survives=True).event == done


def test_a_disk_that_keeps_all_it_completed_loses_nothing_by_a_missing_flush(story: Story) -> None:
    acknowledged_without_a_flush(story, 2)
    assert "keep" in str(chosen(story, kept=Persistence.PLP))
    assert made(story, kept=Persistence.LYING).disks["a"] == EMPTY_HANDED


def test_a_write_that_was_never_submitted_is_lost_on_any_disk(story: Story) -> None:
    story.flush()
    story.begins(2)
    done = story.is_done(2)
    choice = made(story, kept=Persistence.PLP)
    assert choice.event == done
    assert choice.disks["a"] == DiskState(policy=Policy.ALL)


def test_a_finding_that_no_single_cut_shows_is_not_confirmed(story: Story) -> None:
    story.write(uberblock(6))
    story.write(uberblock(5))
    assert story.findings()
    assert "no single cut" in str(chosen(story))


def test_nothing_is_confirmed_before_anything_was_acknowledged(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.begins(1)
    story.write(BLOCK)
    story.write(uberblock(5))
    assert "acknowledged" in str(chosen(story))

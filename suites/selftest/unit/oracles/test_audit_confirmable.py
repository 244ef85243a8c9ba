"""The cut with the surest loss confirms a finding; an impossible cut is never chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, log_block, uberblock, zil_block
from suites.selftest.unit.oracles.audit_scenes import Stage
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


CHOICES = {
    "of several the last one is chosen": (
        "begin 2, write zil, done 2, flush, begin 3, write zil, done 3, flush, "
        "begin 4, write zil, last=done 4, flush, accuses last"
    ),
    "an acknowledgement is preferred to less sure findings": (
        "begin 2, write zil, acknowledged=done 2, write data, write uberblock:5, "
        "write=ask 1, answer write, accuses acknowledged"
    ),
    "a request before an acknowledgement is surer than a later one before none": (
        "write=ask 1, write log, answer write, begin 2, write zil fua, done 2, "
        "made-up-for=flush begins, end made-up-for, "
        "later=ask 2, write later-log, answer later, accuses made-up-for"
    ),
    "an uberblock is surer than a later request": (
        "write data, early=submit uberblock:5, write=ask 1, answer write, "
        "begin 2, write zil fua, done 2, accuses early"
    ),
    "a request is made up for when all of it is": (
        "write=ask 1 double, answer write, write log fua, begin 2, write zil fua, done 2, "
        "rest=write rest-of-log fua, begin 3, write zil fua, done 3, accuses rest"
    ),
    "a commit makes up for a request": (
        "write=ask 1, answer write, begin 2, write zil fua, done 2, "
        "commit=write uberblock:5 fua, begin 3, write zil fua, done 3, accuses commit"
    ),
}


@pytest.mark.parametrize("scene", CHOICES.values(), ids=CHOICES)
def test_the_cut_with_the_surest_loss_is_chosen(scene: str, story: Story) -> None:
    sync = Sync.ALWAYS if "ask" in scene else Sync.STANDARD
    places = {"log": MIB, "rest-of-log": MIB + 4096, "later-log": 2 * MIB}
    logs = {name: log_block((place, 4096)) for name, place in places.items()}
    Stage(story, accused=lambda story: [made(story, sync=sync).event], contents=logs).play(scene)


def test_an_older_log_block_does_not_make_up_for_a_request(story: Story) -> None:
    story.write(log_block((MIB, 4096)), fua=True)
    story.completes(story.client_writes(MIB))
    story.begins(2)
    story.write(zil_block(), fua=True)
    story.is_done(2)
    choice = made(story, sync=Sync.ALWAYS)
    assert choice.event == len(story.events) - 1, "that is the drawn cut"


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

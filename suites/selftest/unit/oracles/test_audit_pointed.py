"""Data that the intent log points to, and data of a transaction group: each has its own rules.

A NAS that logs by pointer, in any order that OpenZFS allows, is accused exactly when at fault.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import (
    BLOCK,
    METADATA,
    Story,
    log_block,
    log_with,
    uberblock,
    zil_block,
)
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.facts.recording.intent_log import Role
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.disk_writes import disk_writes_in
from torture.oracles.audit.invariants import Invariant
from torture.oracles.audit.pointed_data import Pointed, find_pointed
from vmimages.client.load.blocks import Encoder

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "pointing-zil-block.json"
MIB = 1 << 20
PLACE, OTHER = FIRST_BLOCK + 4 * MIB, FIRST_BLOCK + 6 * MIB
ENOUGH = 8
"""So many log blocks later, data without a pointer are a transaction group's own."""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path)
    story.write(uberblock(20), offset=0)
    story.flush()
    return story


def data_of(*operations: int) -> bytes:
    """A block of the volume with a sector of each of these operations."""
    sectors = (Encoder(7).block(file=1, seq=seq, index=0)[:512] for seq in operations)
    return b"".join(sectors).ljust(BLOCK_BYTES, b"\0")


def write_log(story: Story, *records: tuple[int, bytes]) -> int:
    return story.write(pointing(*records), offset=MIB)


def write_enough_log(story: Story) -> None:
    for _ in range(ENOUGH):
        story.write(zil_block(), offset=2 * MIB)


def found(story: Story, sync: Sync = Sync.ALWAYS) -> list[tuple[Invariant, tuple[int, ...]]]:
    return [(finding.invariant, finding.uncovered) for finding in story.findings(sync=sync)]


def pointed_in(story: Story) -> Pointed:
    recording = story.recorded()
    cut = len(recording.events) - 1
    writes = disk_writes_in(recording, cut=cut, is_split=not story.whole_on)
    return find_pointed(recording, writes, whole_on=story.whole_on)


SECOND = Encoder(7).block(file=1, seq=1, index=1)[:512]
BLOCKS = {
    "1": data_of(1),
    "1-and-2": data_of(1, 2),
    "two-sectors": data_of(1)[:512] + SECOND.ljust(BLOCK_BYTES - 512, b"\0"),
    "logged-1": log_with((0, data_of(1)[:512])),
    "data-and-pointer": data_of(1) + pointing((0, pointer(PLACE, txg=22))),
    "others-and-pointer": data_of(0) + pointing((0, pointer(PLACE, txg=22))),
    "data-and-log": BLOCK + log_block((0, 512)),
}


def played(story: Story, scene: str, *, invariant: Invariant) -> None:
    """With a log block that points to 9 MiB or 11 MiB, and `enough` log blocks; accuses by writes."""

    def accused(story: Story) -> list[int]:
        findings = story.findings(sync=Sync.ALWAYS)
        assert {one.invariant for one in findings} <= {invariant}
        if invariant is Invariant.EXTENT_IS_KEPT:
            return [one.event for one in findings]
        return [event for one in findings for event in one.uncovered]

    verbs: Verbs = {
        "point": lambda txg: write_log(story, (0, pointer(PLACE, txg=int(txg)))),
        "point-to-other": lambda txg: write_log(story, (0, pointer(OTHER, txg=int(txg)))),
        "enough": lambda: write_enough_log(story),
    }
    Stage(story, accused=accused, contents=BLOCKS, verbs=verbs).play(scene)


GROUPS = {
    "an uberblock waits for no data of a later group": (
        "write data at 9, write uberblock:21 at 0, point 22, flush, enough, accuses"
    ),
    "nor where the log is there before the data": (
        "point 22, write data at 9, write uberblock:21 at 0, flush, enough, accuses"
    ),
    "an uberblock waits for the data of its own group": (
        "data=write data at 9, point 21, write uberblock:21 at 0, accuses data"
    ),
    "where the log points to nothing all data are a group's own": (
        "own=write data at 9, write uberblock:21 at 0, accuses own"
    ),
}


@pytest.mark.parametrize("scene", GROUPS.values(), ids=GROUPS)
def test_a_group_needs_its_own_data(scene: str, story: Story) -> None:
    played(story, scene, invariant=Invariant.TXG_IS_DURABLE)


def test_data_that_nothing_points_to_are_a_groups_own(story: Story) -> None:
    own = story.write(BLOCK, offset=OTHER)
    data = story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.write(uberblock(21), offset=0)
    assert found(story) == [], "the log may be going to point to it"
    write_enough_log(story)
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]
    assert pointed_in(story).born_in == {data: 22}


@pytest.mark.parametrize(("role", "breaches"), [(Role.DATA, 0), (Role.METADATA, 1)])
def test_a_write_that_zfs_sends_as_it_comes_is_of_no_group_for_sure(
    role: Role, breaches: int, story: Story
) -> None:
    """Direct I/O of a program on the NAS; the same write is a group's own elsewhere."""
    story.write(BLOCK, offset=OTHER)
    story.write(uberblock(21), offset=0)
    recording = story.recorded()
    terms = AuditTerms(sync=Sync.DISABLED, early_roles=(role,))
    findings = audit(recording, cut=len(recording.events) - 1, terms=terms).findings
    assert [one.invariant for one in findings] == [Invariant.TXG_IS_DURABLE] * breaches


def test_an_older_write_of_a_reused_place_is_a_groups_own(story: Story) -> None:
    own = story.write(BLOCK, offset=PLACE)
    story.write(uberblock(21), offset=0)
    write_enough_log(story)
    story.flush()
    story.write(METADATA, offset=OTHER)
    story.flush()
    story.write(uberblock(25), offset=1024)
    story.flush()
    data = story.write(BLOCK, offset=PLACE)
    write_log(story, (0, pointer(PLACE, txg=28)))
    assert pointed_in(story).born_in == {data: 28}
    assert found(story) == [(Invariant.TXG_IS_DURABLE, (own,))]


def test_data_that_were_not_written_again_are_not_those_of_an_older_group(story: Story) -> None:
    story.write(BLOCK, offset=PLACE)
    story.flush()
    story.write(uberblock(21), offset=0)
    story.flush()
    log = write_log(story, (0, pointer(PLACE, txg=24)))
    [data] = pointed_in(story).by_log[log]
    assert data.submissions == frozenset()


ACKNOWLEDGED = {
    "an operation is acknowledged when log and data are covered": (
        "begin 1, write 1 at 9, point 22, flush, done 1, accuses"
    ),
    "an operation with uncovered data is found": (
        "begin 1, point 22, flush, data=write 1 at 9, done 1, accuses data"
    ),
    "an operation whose data come after its acknowledgement is found": (
        "begin 1, point 22, flush, done 1, data=write 1 at 9, accuses data"
    ),
    "an operation with an uncovered log block is found": (
        "begin 1, write 1 at 9, flush, log=point 22, done 1, accuses log"
    ),
    "an older copy of a block, written before a later operation, is enough for its content": (
        "begin 1, write 1 at 9, point 22, flush, begin 2, data=write 1-and-2 at 11, "
        "log=point-to-other 22, done 1, accuses, done 2, accuses data log"
    ),
    "the older copy may be the log's, of a small write": (
        "begin 1, write logged-1 at 1, flush, begin 2, data=write 1-and-2 at 11, "
        "log=point-to-other 22, done 1, accuses, done 2, accuses data log"
    ),
    "the log's own copy of one sector says nothing of the others": (
        "begin 1, write logged-1 at 1, flush, data=write two-sectors at 11, "
        "log=point-to-other 22, done 1, accuses data log"
    ),
    "data and log that are one write, merged on its way to the disk, are both": (
        "begin 1, merged=write data-and-pointer at 9, write uberblock:21 at 0, accuses, "
        "done 1, accuses merged"
    ),
    "a log that was merged behind data is one": (
        "write others-and-pointer at 9, begin 1, write data-and-log at 11, flush, done 1, accuses"
    ),
}


@pytest.mark.parametrize("scene", ACKNOWLEDGED.values(), ids=ACKNOWLEDGED)
def test_an_acknowledged_operation_needs_its_log_and_its_data(scene: str, story: Story) -> None:
    played(story, scene, invariant=Invariant.ACKNOWLEDGED_IS_DURABLE)
    if "uberblock" not in scene:
        assert found(story, Sync.DISABLED) == []


@pytest.mark.parametrize("uncovered", ["", "data", "log"])
def test_a_completed_write_is_durable_once_log_and_data_are_covered(
    story: Story, uncovered: str
) -> None:
    """Wherever in its block it is."""
    write = story.client_writes(3 * BLOCK_BYTES + 8192)
    if uncovered == "data":
        write_log(story, (3 * BLOCK_BYTES, pointer(PLACE, txg=22)))
        story.flush()
    story.write(BLOCK, offset=PLACE)
    if uncovered == "log":
        story.flush()
    if uncovered != "data":
        write_log(story, (3 * BLOCK_BYTES, pointer(PLACE, txg=22)))
    if not uncovered:
        story.flush()
    story.completes(write)
    expected = [3 * BLOCK_BYTES + 8192] if uncovered else []
    assert story.uncovered(sync=Sync.ALWAYS) == (1, expected)


def test_a_write_after_the_datas_submission_is_not_in_it(story: Story) -> None:
    story.write(BLOCK, offset=PLACE)
    write = story.client_writes(0)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [0])


def test_data_on_their_way_for_the_log_are_the_logs_phase(story: Story) -> None:
    scene = "point 22, flush, write data at 9, is zil-written, write data at 11, is txg-written"
    played(story, scene, invariant=Invariant.TXG_IS_DURABLE)


def test_data_for_the_log_begin_no_transaction_group(story: Story) -> None:
    story.write(BLOCK, offset=PLACE, later_ms=1_000)
    write_log(story, (0, pointer(PLACE, txg=22)))
    story.flush()
    story.write(METADATA, offset=OTHER, later_ms=500)
    write_enough_log(story)
    story.flush()
    story.write(uberblock(21), later_ms=50, offset=0)
    story.flush()
    assert story.uncommitted_ms() == 50


KEPT = {
    "data of the next group must not overwrite a group": (
        "write metadata at 9, enough, group 21, point 22, over=write data at 9, accuses over"
    ),
    "nor data of the one after that": (
        "write metadata at 9, enough, group 21, point 23, over=write data at 9, accuses over"
    ),
    "data of a later group may": (
        "write metadata at 9, enough, group 21, point 24, write data at 9, accuses"
    ),
    "pointed data are kept like their groups' blocks": (
        "write data at 9, point 22, enough, write metadata at 32, group 21, "
        "write metadata at 33, group 22, over=write metadata at 9, group 23, enough, accuses over"
    ),
}


@pytest.mark.parametrize("scene", KEPT.values(), ids=KEPT)
def test_pointed_data_and_groups_do_not_overwrite_each_other(scene: str, story: Story) -> None:
    played(story, scene, invariant=Invariant.EXTENT_IS_KEPT)


def test_on_a_mirror_both_copies_have_to_be_covered(story: Story) -> None:
    story.whole_on = ("a", "b")
    story.begins(1)
    first, second = (story.write(data_of(1), offset=PLACE, disk=disk) for disk in (0, 1))
    logs = [
        story.write(pointing((0, pointer(PLACE, txg=22))), offset=MIB, disk=disk) for disk in (0, 1)
    ]
    assert pointed_in(story).born_in == {first: 22, second: 22}
    story.flush(disk=0)
    story.is_done(1)
    assert found(story) == [(Invariant.ACKNOWLEDGED_IS_DURABLE, (second, logs[1]))]


LOG = FIRST_BLOCK + (64 << 20)
LOG_BLOCK_BYTES = 8192


@dataclass
class Nas:
    """Commits and transaction groups, a step at a time, in the order that is drawn."""

    story: Story
    data: st.DataObject
    syncing: int = 20
    places: int = 0
    logs: int = 0
    unwritten: dict[int, int] = field(default_factory=dict)
    """By transaction group, data on their way."""
    covered: dict[int, bool] = field(default_factory=dict)
    """By operation, whether all that holds it was covered when it was acknowledged."""
    completed_at: dict[int, int] = field(default_factory=dict)
    flushes: list[tuple[int, int]] = field(default_factory=list)
    """Beginning and end of each."""

    def place(self) -> int:
        self.places += 1
        return FIRST_BLOCK + self.places * 2 * BLOCK_BYTES

    def flush(self) -> Iterator[None]:
        begun = self.story.begin_flush()
        yield
        self.flushes.append((begun, self.story.complete(begun)))

    def commit(self, operation: int, *, flushes: bool) -> Iterator[None]:
        """An operation whose data are logged by pointer; its log and data in any order."""
        txg = self.syncing + self.data.draw(st.integers(1, 2))
        self.story.begins(operation)
        places = [self.place() for _ in range(self.data.draw(st.integers(1, 2)))]
        self.logs += 1
        log = pointing(
            *((number * BLOCK_BYTES, pointer(x, txg=txg)) for number, x in enumerate(places))
        )
        writes = [
            (Encoder(7).block(file=1, seq=operation, index=index).ljust(BLOCK_BYTES, b"\0"), place)
            for index, place in enumerate(places)
        ]
        writes.append((log, LOG + self.logs * LOG_BLOCK_BYTES))
        self.unwritten[txg] = self.unwritten.get(txg, 0) + 1
        under_way = []
        for number in self.data.draw(st.permutations(range(len(writes)))):
            payload, place = writes[number]
            under_way.append(self.story.submit(payload, offset=place))
            yield
        for submission in self.data.draw(st.permutations(under_way)):
            self.completed_at[submission] = self.story.complete(submission)
            yield
        self.unwritten[txg] -= 1
        if flushes:
            yield from self.flush()
        done = self.story.is_done(operation)
        self.covered[operation] = all(
            any(begun > self.completed_at[write] and end < done for begun, end in self.flushes)
            for write in under_way
        )

    def sync(self) -> Iterator[None]:
        """The next transaction group: what was born in it is written before it begins."""
        txg = self.syncing
        while self.unwritten.get(txg):
            yield
        for _ in range(self.data.draw(st.integers(1, 3))):
            own = self.story.submit(METADATA, offset=self.place())
            yield
            self.story.complete(own)
        yield from self.flush()
        self.story.write(uberblock(txg), offset=txg * 1024)
        yield from self.flush()
        self.syncing += 1


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.booleans(), min_size=1, max_size=6), st.integers(0, 3))
def test_an_operation_is_a_finding_exactly_if_it_was_not_covered(
    data: st.DataObject, flushes: list[bool], groups: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nas = Nas(story=Story(Path(folder)), data=data)
        commits = [nas.commit(seq, flushes=does) for seq, does in enumerate(flushes)]
        syncs = (step for _ in range(groups) for step in nas.sync())
        left = [*commits, syncs]
        while left:
            one = data.draw(st.sampled_from(left))
            if next(one, one) is one:
                left.remove(one)
        findings = nas.story.findings(sync=Sync.ALWAYS)
    assert {finding.invariant for finding in findings} <= {Invariant.ACKNOWLEDGED_IS_DURABLE}
    assert len(findings) == sum(not covered for covered in nas.covered.values())

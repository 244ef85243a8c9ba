"""Labels and uberblocks take turns with a flush between, on disks that stay, join or leave."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, label, uberblock, zil_block
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs, accused_of
from torture.facts.axes.sync import Sync
from torture.facts.recording.events import Kind, RecordedDisk
from torture.oracles.audit import disk_writes
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.invariants import Audit, Finding, Invariant
from torture.oracles.audit.vdevs.labels import is_partition_table, is_probe

AREA = 256 * 1024
AREAS = tuple(area * AREA for area in (4, 5, 16_001, 16_002))
"""The third label's is an odd multiple: its place among the four counts, not the number's."""
LABEL_AT, UBERBLOCK_AT = 16 * 1024, 128 * 1024


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A disk whose four labels have been seen, by an uberblock in each."""
    story = Story(folder=tmp_path)
    uberblocks(story, txg=4)
    story.flush()
    return story


def uberblocks(story: Story, *areas: int, txg: int) -> list[int]:
    places = [area + UBERBLOCK_AT + txg * 1024 for area in areas or AREAS]
    return [story.write(uberblock(txg), offset=place) for place in places]


def labels(story: Story, *which: int) -> list[int]:
    return [story.write(label(), offset=AREAS[place] + LABEL_AT) for place in which]


TURNS = {
    "a configuration that is written in order is no finding": (
        "label 0, label 2, flush, uberblocks 5, flush, label 1, label 3, flush, "
        "label 0, label 2, flush, uberblocks 6, flush, label 1, label 3, accuses"
    ),
    "an uberblock before the labels are covered is found": (
        "x=label 0, y=label 2, a=uberblock 5 0, b=uberblock 5 1, c=uberblock 5 2, d=uberblock 5 3, "
        "accuses a x y b x y c x y d x y"
    ),
    "a second label before the uberblocks are covered is found": (
        "a=uberblock 5 0, b=uberblock 5 1, c=uberblock 5 2, d=uberblock 5 3, "
        "wrong=label 1, accuses wrong a b c d"
    ),
    "so is a fourth label": (
        "a=uberblock 5 0, b=uberblock 5 1, c=uberblock 5 2, d=uberblock 5 3, "
        "wrong=label 3, accuses wrong a b c d"
    ),
    "a first label, of the next group, waits for nothing": "uberblocks 5, label 0, accuses",
    "nor does a third one": "uberblocks 5, label 2, accuses",
    "another disk's labels, of which fewer may be known, are not this one's": (
        "uberblocks 5, label 1 1, accuses"
    ),
    "uberblocks of a disk that is not in the pool yet, written beside its labels, end no group": (
        "label 0, label 1, label 2, label 3, uberblocks 0, accuses, "
        "flush, x=label 0, y=label 2, a=uberblock 5 0, b=uberblock 5 1, c=uberblock 5 2, "
        "d=uberblock 5 3, accuses a x y b x y c x y d x y"
    ),
}


@pytest.mark.parametrize("scene", TURNS.values(), ids=TURNS)
def test_labels_and_uberblocks_take_turns(scene: str, story: Story) -> None:
    """With a `label` and an `uberblock` at one of the four places, and `uberblocks` at all."""

    def write_label(place: str, disk: str = "0") -> int:
        return story.write(label(), offset=AREAS[int(place)] + LABEL_AT, disk=int(disk))

    verbs: Verbs = {
        "label": write_label,
        "uberblock": lambda txg, place: uberblocks(story, AREAS[int(place)], txg=int(txg))[0],
        "uberblocks": lambda txg: uberblocks(story, txg=int(txg))[0],
    }
    Stage(story, accused=accused_of(Invariant.LABELS_TAKE_TURNS), verbs=verbs).play(scene)


def test_with_fewer_than_four_known_labels_nothing_is_reported(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    uberblocks(story, AREAS[0], AREAS[2], txg=4)
    labels(story, 1, 2)
    assert Invariant.LABELS_TAKE_TURNS not in {one.invariant for one in story.findings()}


def test_a_probe_of_a_label_needs_no_flush(story: Story) -> None:
    story.write(bytes(8192), offset=AREAS[3] + 8192)
    uberblocks(story, txg=5)
    assert story.findings() == []


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (AREAS[1] + 8192, 8192, True),
        (AREAS[3] + 8192, 8192, True),
        (AREAS[1] + 8192, 4096, False),
        (AREAS[1], 8192, False),
        (1000 * AREA + 8192, 8192, False),
        (20 * AREA + 8192, 8192, False),
    ],
)
def test_a_probe_is_detected_by_its_place_and_length(
    story: Story, offset: int, length: int, expected: bool
) -> None:
    event = story.events[story.write(bytes(length), offset=offset)]
    assert is_probe(event, replace(story.recorded().disks[0], size=AREAS[3] + AREA)) is expected


@pytest.mark.parametrize(
    ("from_end", "place", "length", "is_found"),
    [
        (True, 33 * 512, 16 * 1024, False),
        (True, 512, 512, False),
        (False, 512, 33 * 512, False),
        (False, 0, 512, False),
        (True, 34 * 512, 16 * 1024, True),
        (True, 33 * 512, 4096, True),
        (False, 512, 512, True),
        (False, 34 * 512, 512, True),
    ],
)
def test_no_transaction_group_waits_for_a_partition_table(
    story: Story, from_end: bool, place: int, length: int, is_found: bool
) -> None:
    """zpool(8) writes it to a disk that is added, while the pool goes on."""
    [disk, *_] = story.recorded().disks
    written = story.write(bytes(length), offset=disk.size - place if from_end else place)
    last = story.write(uberblock(5), offset=AREAS[0] + UBERBLOCK_AT)
    wanted = [Finding(invariant=Invariant.TXG_IS_DURABLE, event=last, uncovered=(written,))]
    assert story.findings() == (wanted if is_found else [])


@pytest.mark.parametrize(("place", "length"), [(0, 4096), (4096, 5 * 4096), (-4096, 4096)])
def test_a_partition_table_counts_in_the_disks_logical_sectors(
    story: Story, place: int, length: int
) -> None:
    [disk, *_] = story.recorded().disks
    event = story.events[story.write(bytes(length), offset=place % disk.size)]
    assert not is_partition_table(event, disk)
    assert is_partition_table(event, replace(disk, sector=4096, physical_sector=4096))


def test_a_waived_invariant_is_checked_before_its_event(story: Story) -> None:
    """An administration's command excuses nothing that was before it."""
    story.write(BLOCK)
    early = story.write(uberblock(5), offset=AREAS[0] + UBERBLOCK_AT)
    story.flush()
    story.write(BLOCK)
    late = story.write(uberblock(6), offset=AREAS[0] + UBERBLOCK_AT)
    cut = len(story.events) - 1
    kind = Invariant.TXG_IS_DURABLE

    def found(waived: dict[Invariant, int]) -> list[int]:
        terms = AuditTerms(sync=Sync.DISABLED, waived=waived)
        audited = audit(story.recorded(), cut=cut, terms=terms)
        assert len(audited.findings) + audited.waived == 2
        assert audited.as_document(took_ms=1).waived == (audited.waived or None)
        return [finding.event for finding in audited.findings]

    assert found({}) == [early, late]
    assert found({kind: late}) == [early]
    assert found({kind: 0}) == []


# Disks that join or leave the pool: their first and last labels break no rule, all others may.

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "layout-change.json"
_PAD_AT = 8 * 1024
LEAVING, JOINING = label(txg=0, create_txg=0, state=0), label(txg=0, create_txg=7, state=0)
CACHE = label(state=4)


@pytest.fixture
def pair(tmp_path: Path) -> Story:
    """Two disks of a pool, with an uberblock in each label."""
    pair = Story(folder=tmp_path)
    for disk in (0, 1):
        for area in AREAS:
            pair.write(uberblock(4), offset=area + UBERBLOCK_AT, disk=disk)
        pair.flush(disk=disk)
    return pair


def initialises(pair: Story, text: bytes, *, is_merged: bool = False) -> None:
    """Write as `vdev_label_init` does, without a flush."""
    for area in AREAS:
        if is_merged:
            pair.write(bytes(LABEL_AT - _PAD_AT) + text, offset=area + _PAD_AT, disk=1)
        else:
            pair.write(text, offset=area + LABEL_AT, disk=1)
            pair.write(bytes(LABEL_AT - _PAD_AT), offset=area + _PAD_AT, disk=1)
        pair.write(uberblock(0).ljust(128 * 1024, b"\0"), offset=area + UBERBLOCK_AT, disk=1)


def ends_group(pair: Story, txg: int) -> None:
    labels(pair, 0, 2)
    pair.flush()
    uberblocks(pair, txg=txg)
    pair.flush()
    labels(pair, 1, 3)
    pair.flush()


def audited(pair: Story, *, disks: tuple[RecordedDisk, ...] = ()) -> Audit:
    recording = pair.recorded()
    recording = replace(recording, disks=disks or recording.disks)
    return audit(recording, cut=len(pair.events) - 1, terms=AuditTerms(sync=Sync.STANDARD))


def recorded_in(folder: Path) -> Audit:
    """The audit of a NAS's recording, of which labels, uberblocks and flushes are left."""
    document = json.loads(RECORDED.read_text())
    disks = tuple(
        RecordedDisk(name=disk["name"], size=disk["size"], sector=512, physical_sector=4096)
        for disk in document["disks"]
    )
    pair, numbers = Story(folder=folder), list[int]()
    for kind, disk, *rest in document["events"]:
        match Kind(kind), rest:
            case Kind.WRITE_SUBMIT, [offset, text]:
                payload = zlib.decompress(b64decode(text))
                numbers.append(pair.submit(payload, disk=disk, offset=offset))
            case Kind.FLUSH_SUBMIT, []:
                numbers.append(pair.begin_flush(disk=disk))
            case _, [submission]:
                numbers.append(pair.complete(numbers[submission]))
    return audited(pair, disks=disks)


def test_a_log_device_that_left_and_came_back_under_load_breaks_no_rule(tmp_path: Path) -> None:
    found = recorded_in(tmp_path)
    assert found.findings == ()
    assert found.layout_changes == ("slog0 left", "slog0 joined")


def test_the_same_labels_of_a_disk_that_stays_break_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_writes, "change_in", lambda *_: None)
    assert Invariant.TXG_IS_DURABLE in {one.invariant for one in recorded_in(tmp_path).findings}


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize(
    ("text", "change"), [(LEAVING, "b left"), (JOINING, "b joined"), (CACHE, "b left")]
)
def test_labels_of_a_disk_that_joins_or_leaves_break_no_rule(
    pair: Story, text: bytes, change: str, is_merged: bool
) -> None:
    initialises(pair, text, is_merged=is_merged)
    for txg in (5, 6):
        pair.write(BLOCK, offset=txg << 23)
        pair.flush()
        ends_group(pair, txg)
    found = audited(pair)
    assert found.findings == ()
    assert found.layout_changes == (change,)


def test_a_pool_that_is_made_in_the_recording_does_not_change_under_the_load(pair: Story) -> None:
    initialises(pair, JOINING)
    pair.begins(1)
    assert audited(pair).layout_changes == ()
    initialises(pair, LEAVING)
    assert audited(pair).layout_changes == ("b left",)


def test_the_group_of_creation_of_another_disk_in_the_same_label_does_not_count(
    pair: Story,
) -> None:
    """The label of a replaced disk has the tree of its former mirror."""
    tree, own = label(create_txg=4)[:24], label(txg=0, create_txg=0)
    initialises(pair, tree + own[: -len(tree) - 40] + own[-40:])
    assert audited(pair).layout_changes == ("b left",)


def test_a_disk_that_left_may_be_used_for_something_else(pair: Story) -> None:
    pair.write(BLOCK, offset=6 << 20, disk=1)
    initialises(pair, LEAVING)
    pair.write(b"mkfs".ljust(4096, b"\1"), offset=6 << 20, disk=1)
    pair.trim(offset=0, length=64 << 20, disk=1)
    ends_group(pair, 5)
    assert audited(pair).findings == ()


def test_data_on_a_disk_that_joins_have_to_be_covered_by_its_first_group(pair: Story) -> None:
    initialises(pair, LEAVING)
    initialises(pair, JOINING)
    written = pair.write(BLOCK, offset=6 << 20, disk=1)
    pair.flush()
    ends_group(pair, 5)
    found = audited(pair)
    assert found.layout_changes == ("b left", "b joined")
    assert {one.invariant for one in found.findings} == {Invariant.TXG_IS_DURABLE}
    assert found.findings[0].uncovered == (written,)


def test_uberblocks_of_group_0_commit_nothing(pair: Story) -> None:
    pair.begins(1)
    pair.write(zil_block(), disk=0)
    initialises(pair, JOINING)
    pair.flush(disk=1)
    pair.is_done(1)
    found = audited(pair).findings
    assert [one.invariant for one in found] == [Invariant.ACKNOWLEDGED_IS_DURABLE]


def test_an_unflushed_label_of_a_member_is_still_found(pair: Story) -> None:
    initialises(pair, LEAVING)
    labels(pair, 0, 2)
    uberblocks(pair, txg=5)
    assert {one.invariant for one in audited(pair).findings} == {Invariant.LABELS_TAKE_TURNS}

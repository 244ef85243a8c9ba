"""Disks that join or leave the pool: their first and last labels break no rule, all others may."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, label, uberblock, zil_block
from suites.selftest.unit.oracles.test_audit_labels import (
    AREAS,
    LABEL_AT,
    UBERBLOCK_AT,
    labels,
    uberblocks,
)
from torture.facts.axes.sync import Sync
from torture.facts.recording.events import Kind, RecordedDisk
from torture.oracles.audit import disk_writes
from torture.oracles.audit.audit import audit
from torture.oracles.audit.audit_terms import AuditTerms
from torture.oracles.audit.invariants import Audit, Invariant

RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "layout-change.json"
_PAD_AT = 8 * 1024
LEAVING, JOINING = label(txg=0, create_txg=0, state=0), label(txg=0, create_txg=7, state=0)
CACHE = label(state=4)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Two disks of a pool, with an uberblock in each label."""
    story = Story(folder=tmp_path)
    for disk in (0, 1):
        for area in AREAS:
            story.write(uberblock(4), offset=area + UBERBLOCK_AT, disk=disk)
        story.flush(disk=disk)
    return story


def initialises(story: Story, text: bytes, *, is_merged: bool = False) -> None:
    """Write as `vdev_label_init` does, without a flush."""
    for area in AREAS:
        if is_merged:
            story.write(bytes(LABEL_AT - _PAD_AT) + text, offset=area + _PAD_AT, disk=1)
        else:
            story.write(text, offset=area + LABEL_AT, disk=1)
            story.write(bytes(LABEL_AT - _PAD_AT), offset=area + _PAD_AT, disk=1)
        story.write(uberblock(0).ljust(128 * 1024, b"\0"), offset=area + UBERBLOCK_AT, disk=1)


def ends_group(story: Story, txg: int) -> None:
    labels(story, 0, 2)
    story.flush()
    uberblocks(story, txg=txg)
    story.flush()
    labels(story, 1, 3)
    story.flush()


def audited(story: Story, *, disks: tuple[RecordedDisk, ...] = ()) -> Audit:
    recording = story.recorded()
    recording = replace(recording, disks=disks or recording.disks)
    return audit(recording, cut=len(story.events) - 1, terms=AuditTerms(sync=Sync.STANDARD))


def recorded_in(folder: Path) -> Audit:
    """The audit of a NAS's recording, of which labels, uberblocks and flushes are left."""
    document = json.loads(RECORDED.read_text())
    disks = tuple(
        RecordedDisk(name=disk["name"], size=disk["size"], sector=512, physical_sector=4096)
        for disk in document["disks"]
    )
    story, numbers = Story(folder=folder), list[int]()
    for kind, disk, *rest in document["events"]:
        match Kind(kind), rest:
            case Kind.WRITE_SUBMIT, [offset, text]:
                payload = zlib.decompress(b64decode(text))
                numbers.append(story.submit(payload, disk=disk, offset=offset))
            case Kind.FLUSH_SUBMIT, []:
                numbers.append(story.begin_flush(disk=disk))
            case _, [submission]:
                numbers.append(story.complete(numbers[submission]))
    return audited(story, disks=disks)


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
    story: Story, text: bytes, change: str, is_merged: bool
) -> None:
    initialises(story, text, is_merged=is_merged)
    for txg in (5, 6):
        story.write(BLOCK, offset=txg << 23)
        story.flush()
        ends_group(story, txg)
    found = audited(story)
    assert found.findings == ()
    assert found.layout_changes == (change,)


def test_the_group_of_creation_of_another_disk_in_the_same_label_does_not_count(
    story: Story,
) -> None:
    """The label of a replaced disk has the tree of its former mirror."""
    tree, own = label(create_txg=4)[:24], label(txg=0, create_txg=0)
    initialises(story, tree + own[: -len(tree) - 40] + own[-40:])
    assert audited(story).layout_changes == ("b left",)


def test_a_disk_that_left_may_be_used_for_something_else(story: Story) -> None:
    story.write(BLOCK, offset=6 << 20, disk=1)
    initialises(story, LEAVING)
    story.write(b"mkfs".ljust(4096, b"\1"), offset=6 << 20, disk=1)
    story.trim(offset=0, length=64 << 20, disk=1)
    ends_group(story, 5)
    assert audited(story).findings == ()


def test_data_on_a_disk_that_joins_have_to_be_covered_by_its_first_group(story: Story) -> None:
    initialises(story, LEAVING)
    initialises(story, JOINING)
    written = story.write(BLOCK, offset=6 << 20, disk=1)
    story.flush()
    ends_group(story, 5)
    found = audited(story)
    assert found.layout_changes == ("b left", "b joined")
    assert {one.invariant for one in found.findings} == {Invariant.TXG_IS_DURABLE}
    assert found.findings[0].uncovered == (written,)


def test_uberblocks_of_group_0_commit_nothing(story: Story) -> None:
    story.begins(1)
    story.write(zil_block(), disk=0)
    initialises(story, JOINING)
    story.flush(disk=1)
    story.is_done(1)
    found = audited(story).findings
    assert [one.invariant for one in found] == [Invariant.ACKNOWLEDGED_IS_DURABLE]


def test_an_unflushed_label_of_a_member_is_still_found(story: Story) -> None:
    initialises(story, LEAVING)
    labels(story, 0, 2)
    uberblocks(story, txg=5)
    assert {one.invariant for one in audited(story).findings} == {Invariant.LABELS_TAKE_TURNS}

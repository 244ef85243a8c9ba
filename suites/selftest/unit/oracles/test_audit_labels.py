"""Labels and uberblocks take turns with a flush in between; one that comes too early is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, Story, label, uberblock
from torture.facts.axes.sync import Sync
from torture.oracles.audit.audit import audit
from torture.oracles.audit.audit_terms import AuditTerms
from torture.oracles.audit.invariants import Finding, Invariant
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


def uberblocks(story: Story, *, txg: int) -> list[int]:
    return [story.write(uberblock(txg), offset=area + UBERBLOCK_AT + txg * 1024) for area in AREAS]


def labels(story: Story, *which: int) -> list[int]:
    return [story.write(label(), offset=AREAS[place] + LABEL_AT) for place in which]


def accused(story: Story) -> dict[int, tuple[int, ...]]:
    return {
        finding.event: finding.uncovered
        for finding in story.findings()
        if finding.invariant is Invariant.LABELS_TAKE_TURNS
    }


def test_a_configuration_that_is_written_in_order_is_no_finding(story: Story) -> None:
    for txg in (5, 6):
        labels(story, 0, 2)
        story.flush()
        uberblocks(story, txg=txg)
        story.flush()
        labels(story, 1, 3)
        story.flush()
    assert accused(story) == {}


def test_an_uberblock_before_the_labels_are_covered_is_found(story: Story) -> None:
    early = labels(story, 0, 2)
    first, *others = uberblocks(story, txg=5)
    assert accused(story) == dict.fromkeys((first, *others), tuple(early))


@pytest.mark.parametrize("place", [1, 3])
def test_a_second_or_fourth_label_before_the_uberblocks_are_covered_is_found(
    story: Story, place: int
) -> None:
    early = uberblocks(story, txg=5)
    [wrong] = labels(story, place)
    assert accused(story) == {wrong: tuple(early)}


@pytest.mark.parametrize("place", [0, 2])
def test_a_first_or_third_label_waits_for_nothing(story: Story, place: int) -> None:
    """It belongs to the next transaction group, so it need not wait for this group's uberblock."""
    uberblocks(story, txg=5)
    labels(story, place)
    assert accused(story) == {}


def test_with_fewer_than_four_known_labels_nothing_is_reported(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(uberblock(4), offset=AREAS[0] + UBERBLOCK_AT)
    story.write(uberblock(4), offset=AREAS[2] + UBERBLOCK_AT)
    labels(story, 1, 2)
    assert accused(story) == {}


def test_another_disks_labels_are_not_this_ones(story: Story) -> None:
    """Which label it is may be known of one disk and not of another."""
    uberblocks(story, txg=5)
    story.write(label(), offset=AREAS[1] + LABEL_AT, disk=1)
    assert accused(story) == {}


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


def test_the_uberblocks_of_a_disk_that_is_not_in_the_pool_yet_end_no_group(story: Story) -> None:
    """All four labels and uberblocks are written side by side then, of transaction group 0."""
    labels(story, 0, 1, 2, 3)
    uberblocks(story, txg=0)
    assert story.findings() == []
    story.flush()
    labels(story, 0, 2)
    assert dict.fromkeys(uberblocks(story, txg=5)).keys() == accused(story).keys()


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
        return [finding.event for finding in audited.findings]

    assert found({}) == [early, late]
    assert found({kind: late}) == [early]
    assert found({kind: 0}) == []

"""The certain writes of a disk at a cut, the content of its places before, and the faults' effects."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import METADATA, Story, uberblock, zil_block
from suites.selftest.unit.event_records import encode_event
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, logs, payload
from torture.choices.experiments import DISTURBANCES, FAULTS
from torture.choices.experiments.damage import SPOILERS
from torture.errors import HarnessError
from torture.facts.recording.certain_content import CertainContent, Patch, held
from torture.facts.recording.crash_state import CrashState, DiskState, Policy, write_crash_state
from torture.facts.recording.events import (
    CONFIGURATION,
    DATA,
    LOG,
    Kind,
    Recording,
    load_recording,
)
from torture.facts.recording.model import content
from torture.machines.nas.pool import gone_at_cut
from torture.trials.plan.draw import draw_planted
from torture.trials.plan.trial_plan import draw_plan

ALL = DiskState(policy=Policy.ALL)
BLOCK = 16384
NAMES = ("a", "b")


def stored(log: Log, folder: Path, *, view: Path | None = None) -> Recording:
    """A log of two disks as a shelf would have recorded it, read back."""
    folder.mkdir()
    data = bytearray()
    records = b""
    for event in log.events:
        if event.kind is Kind.WRITE_SUBMIT:
            event = replace(event, reference=len(data))
            data += payload(event.seq, event.length // SECTOR)
        records += encode_event(event)
    disks = [
        {"name": name, "size": SECTOR * SECTORS, "sector": SECTOR}
        | ({} if view is None else {"source": {"view": str(view), "disk": name}})
        for name in NAMES
    ]
    (folder / CONFIGURATION).write_text(json.dumps({"schema": 1, "disks": disks}))
    (folder / LOG).write_bytes(records)
    (folder / DATA).write_bytes(data)
    return load_recording(folder)


def all_of(recording: Recording, file: Path, *, disk: DiskState = ALL) -> Path:
    cut = len(recording.events) - 1
    disks = dict.fromkeys(NAMES, disk)
    write_crash_state(file, CrashState(recording=recording.folder, cut=cut, seed=0, disks=disks))
    return file


@given(log=logs, below=logs, place=st.tuples(st.integers(0, SECTORS - 1), st.integers(1, SECTORS)))
def test_a_places_content_agrees_with_the_model(
    log: Log, below: Log, place: tuple[int, int]
) -> None:
    """The model keeps all that was completed; below the log lies another one."""
    first, count = place
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ground = stored(below, folder / "below")
        view = all_of(ground, folder / "below.view.json")
        recording = stored(log, folder / "life", view=view)
        base = modelled(below, bytes(SECTOR * SECTORS))
        expected = modelled(log, base)[first * SECTOR :][: count * SECTOR]
        found = held(
            recording,
            disk=0,
            offset=first * SECTOR,
            length=len(expected),
            before=len(recording.events),
        )
    assert found == expected


def modelled(log: Log, base: bytes) -> bytes:
    return content(
        base, log.events, disk=0, sector=SECTOR, view=ALL, cut=log.last, seed=0, payload=payload
    )


def test_later_writes_do_not_change_the_earlier_content(tmp_path: Path) -> None:
    log = Log()
    first = log.write(at=1, sectors=2)
    second = log.write(at=2, sectors=2)
    log.write(at=0, sectors=8)
    recording = stored(log, tmp_path / "life")
    found = held(recording, disk=0, offset=SECTOR, length=3 * SECTOR, before=second)
    assert found == payload(first, 2) + bytes(SECTOR)


def test_the_content_of_a_disk_that_had_lost_writes_is_refused(tmp_path: Path) -> None:
    ground = stored(Log(), tmp_path / "below")
    volatile = DiskState(policy=Policy.FLUSHED)
    view = all_of(ground, tmp_path / "below.view.json", disk=volatile)
    recording = stored(Log(), tmp_path / "life", view=view)
    with pytest.raises(HarnessError, match="lost writes of a"):
        held(recording, disk=0, offset=0, length=SECTOR, before=1)


def data(letter: str) -> bytes:
    return letter.encode() * BLOCK


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(folder=tmp_path)


def remains_of(story: Story, *, disk: int = 0, cut: int | None = None) -> CertainContent:
    last = len(story.events) - 1
    return CertainContent(recording=story.recorded(), disk=disk, cut=last if cut is None else cut)


def committed(story: Story, *blocks: bytes, txg: int) -> list[int]:
    """A transaction group of this data, whole and covered."""
    submissions = [story.write(block) for block in blocks]
    story.flush()
    story.write(uberblock(txg))
    story.flush()
    return submissions


def test_committed_writes_end_at_the_last_covered_uberblock(story: Story) -> None:
    submissions = committed(story, data("a"), data("b"), txg=1)
    story.write(data("c"), disk=1)
    story.write(data("d"))
    story.flush()
    story.write(uberblock(2))
    found = remains_of(story).committed_writes()
    assert [write.submission for write in found] == submissions
    story.flush()
    assert len(remains_of(story).committed_writes()) == 3
    story.write(data("e"))
    story.write(uberblock(3), fua=True)
    assert len(remains_of(story).committed_writes()) == 3, "a disk may write what it likes first"


def test_without_committed_writes_a_fault_in_them_is_refused(story: Story) -> None:
    story.write(data("a"))
    story.flush()
    story.write(uberblock(1))
    with pytest.raises(HarnessError, match="no block was committed on a"):
        remains_of(story).committed_writes()
    with pytest.raises(HarnessError, match="no block of the intent log is sure to be on a"):
        remains_of(story).needed_log()


def test_the_log_that_is_needed_begins_behind_the_last_uberblock(story: Story) -> None:
    story.write(zil_block())
    committed(story, data("a"), txg=1)
    needed = story.write(zil_block())
    story.write(zil_block())
    story.flush()
    story.write(zil_block())
    assert remains_of(story).needed_log().submission == needed


def test_only_one_disk_up_to_the_cut_is_searched(story: Story) -> None:
    first = committed(story, data("a"), txg=1)
    cut = len(story.events) - 1
    committed(story, data("b"), txg=2)
    other = story.write(zil_block(), disk=1)
    story.flush(disk=1)
    found = remains_of(story, cut=cut).committed_writes()
    assert [write.submission for write in found] == first
    assert remains_of(story, disk=1).needed_log().submission == other
    with pytest.raises(HarnessError, match="sure to be on a"):
        remains_of(story).needed_log()


def test_of_blocks_under_way_together_the_first_submitted_is_needed(story: Story) -> None:
    first, second = story.submit(zil_block()), story.submit(zil_block())
    story.complete(second)
    story.complete(first)
    story.flush()
    assert remains_of(story).needed_log().submission == first


def test_otherwise_it_follows_the_metadata_of_the_last_uberblock(story: Story) -> None:
    """Each uberblock is written to several labels, and metadata are several writes."""
    for txg in (1, 2):
        story.write(zil_block())
        story.write(METADATA)
        needed = story.write(zil_block())
        story.write(METADATA)
        story.write(zil_block())
        story.flush()
        story.write(uberblock(txg))
        story.write(uberblock(txg))
    story.write(METADATA)
    story.write(zil_block())
    assert remains_of(story).needed_log().submission == needed


def test_otherwise_it_is_the_last_covered_block(story: Story) -> None:
    story.write(zil_block())
    last = story.write(zil_block())
    story.flush()
    story.write(METADATA)
    story.write(uberblock(1))
    story.write(zil_block())
    assert remains_of(story).needed_log().submission == last


def patches_of(name: str, certain: CertainContent) -> tuple[Patch, ...]:
    damage = FAULTS[name].damage
    assert damage is not None
    return SPOILERS[damage](certain)


def test_one_bit_is_flipped_in_a_file_that_no_load_changes(story: Story) -> None:
    still = (b"this one is at rest\n" * BLOCK)[7 : BLOCK + 7]
    _, block, _ = committed(story, data("a"), still, data("b"), txg=1)
    [patch] = patches_of("bit-flipped", remains_of(story))
    assert patch.offset == story.events[block].offset + SECTOR
    sound = still[SECTOR : 2 * SECTOR]
    changed = [
        (n, x ^ y) for n, (x, y) in enumerate(zip(patch.content, sound, strict=True)) if x != y
    ]
    assert changed == [(1000 - SECTOR, 1)]


def test_it_is_found_in_a_write_that_was_merged_with_another(story: Story) -> None:
    still = b"this one is at rest\n" * BLOCK
    [merged] = committed(story, data("a")[: SECTOR * 3] + still[: 2 * BLOCK], txg=1)
    [patch] = patches_of("bit-flipped", remains_of(story))
    assert patch.offset == story.events[merged].offset + BLOCK + SECTOR


def test_without_such_a_file_there_is_nothing_to_flip(story: Story) -> None:
    committed(story, data("a"), data("n"), txg=1)
    with pytest.raises(HarnessError, match="untouched"):
        patches_of("bit-flipped", remains_of(story))


def test_the_last_sector_of_a_block_of_that_file_is_old(story: Story) -> None:
    still = (b"this one is at rest\n" * BLOCK)[:BLOCK]
    old = story.write(data("o") + data("p"))
    place = story.events[old].offset
    story.write(data("n") + still, offset=place)
    committed(story, data("a"), txg=1)
    [patch] = patches_of("sector-torn", remains_of(story))
    assert patch == Patch(offset=place + 2 * BLOCK - SECTOR, content=b"p" * SECTOR)
    story.write(data("n") + still[:-SECTOR] + b"p" * SECTOR, offset=place)
    story.write(data("n") + still, offset=place)
    committed(story, data("a"), txg=2)
    [patch] = patches_of("sector-torn", remains_of(story))
    assert patch == Patch(offset=place + 2 * BLOCK - SECTOR, content=b"p" * SECTOR)
    story.write(data("n") + still, offset=place)
    committed(story, data("a"), txg=3)
    with pytest.raises(HarnessError, match="changed no sector"):
        patches_of("sector-torn", remains_of(story))


def test_a_misdirected_write_spoils_two_places_of_that_file(story: Story) -> None:
    lines = b"this one is at rest\n" * BLOCK
    first, second = lines[:BLOCK], lines[BLOCK : 2 * BLOCK]
    victim, merged, _ = committed(story, first, data("a") + second, data("c"), txg=1)
    there, here = story.events[victim].offset, story.events[merged].offset + BLOCK
    assert patches_of("write-misdirected", remains_of(story)) == (
        Patch(offset=here, content=bytes(BLOCK)),
        Patch(offset=there, content=second),
    )


def test_one_block_of_it_is_not_enough_to_misdirect_a_write(story: Story) -> None:
    committed(story, (b"this one is at rest\n" * BLOCK)[:BLOCK], data("a"), txg=1)
    with pytest.raises(HarnessError, match="1 blocks were committed, not 2"):
        patches_of("write-misdirected", remains_of(story))


def test_a_stale_read_gives_a_block_of_the_log_as_it_was(story: Story) -> None:
    old = story.write(data("o"))
    story.write(uberblock(1))
    place = story.events[old].offset
    block = zil_block()
    story.write(block, offset=place)
    story.flush()
    [patch] = patches_of("read-stale", remains_of(story))
    assert patch == Patch(offset=place, content=data("o")[: len(block)])


def test_a_disturbance_sets_the_survivors_of_each_leg_of_a_mirror() -> None:
    fault = DISTURBANCES["log-on-one-leg"]
    for spec in draw_planted([fault], trials=20, run_seed=1, load_ms=4000):
        plan = draw_plan(spec)
        assert gone_at_cut(spec.cell, spec.seed)
        assert not plan.gone
        assert {serial: plan.survivors[serial] for serial in fault.survivors} == fault.survivors
        assert "data0" in plan.survivors

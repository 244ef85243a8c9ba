"""Atomic writes on an image of a disk: read back and judged whole, absent, torn and beside old data."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.loads.test_applications import HELLO, judged
from suites.selftest.unit.oracles.test_transactions import ledger_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import AXIS
from torture.choices.workloads.atomic import AtomicWrites
from torture.choices.workloads.protocol import Place
from torture.facts.evidence.ledger import Ledger
from torture.oracles.verdict.guarantee import Verdict
from vmimages.client.load import read
from vmimages.client.load.applications import application_of
from vmimages.client.load.blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder

_LOAD = AXIS.choice("atomic").value
_STORY = [("begin", 1), ("done", 1), ("begin", 2), ("done", 2), ("begin", 3)]
"""Writes 1 and 2 are acknowledged, 3 is under way."""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A disk with these three writes, each in the unit before its own number."""
    assert isinstance(_LOAD, AtomicWrites)
    image = tmp_path / "disk"
    job = _LOAD.job(seed=7, place=Place(device=str(image)))
    encoder, blocks = Encoder(7), job["unit_bytes"] // BLOCK_BYTES
    with image.open("wb") as file:
        for seq in (1, 2, 3):
            for index in range((seq - 1) * blocks, seq * blocks):
                file.write(encoder.block(file=0, seq=seq, index=index))
        file.truncate(job["units"] * job["unit_bytes"])
    return image


def _verdict(disk: Path) -> tuple[Verdict | None, int]:
    assert isinstance(_LOAD, AtomicWrites)
    job = _LOAD.job(seed=7, place=Place(device=str(disk)))
    ledger = ledger_of(_STORY, writers=job["writers"])
    whole = Ledger(events=(HELLO, *ledger.events))
    findings = judged(_LOAD, whole, read.run(job))
    return findings.verdict, findings.lost


def _without(disk: Path, *, sector: int, sectors: int) -> None:
    with disk.open("r+b") as file:
        file.seek(sector * SECTOR_BYTES)
        file.write(bytes(sectors * SECTOR_BYTES))


def test_writes_that_are_there_whole_are_intact(disk: Path) -> None:
    assert _verdict(disk) == (Verdict.INTACT, 0)


def test_a_write_under_way_may_be_absent_and_an_acknowledged_one_may_not(disk: Path) -> None:
    _without(disk, sector=64, sectors=32)
    assert _verdict(disk) == (Verdict.INTACT, 0)
    _without(disk, sector=32, sectors=32)
    assert _verdict(disk) == (Verdict.ROLLED_BACK, 1)


@pytest.mark.parametrize(("first", "count"), [(64, 1), (80, 16), (95, 1)])
def test_a_write_under_way_is_torn_by_any_sector(disk: Path, first: int, count: int) -> None:
    _without(disk, sector=first, sectors=count)
    assert _verdict(disk)[0] is Verdict.CORRUPTED


def test_a_flipped_bit_tears_an_acknowledged_write(disk: Path) -> None:
    with disk.open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff")
    assert _verdict(disk) == (Verdict.CORRUPTED, 1)


def test_a_writer_flushes_after_eleven_writes_to_units_of_its_own(disk: Path) -> None:
    assert isinstance(_LOAD, AtomicWrites)
    application = application_of(_LOAD.job(seed=7, place=Place(device=str(disk))))
    first, second = (
        [planner.draw() for _ in range(24)] for planner in map(application.planner, (0, 1))
    )
    assert [one.is_durable for one in first] == ([False] * 11 + [True]) * 2
    units = [{one.what.get("unit") for one in drawn} - {None} for drawn in (first, second)]
    assert [len(own) for own in units] == [22, 22]
    assert not units[0] & units[1]


def test_a_disk_that_offers_none_is_refused(disk: Path) -> None:
    assert isinstance(_LOAD, AtomicWrites)
    application = application_of(_LOAD.job(seed=7, place=Place(device=str(disk))))
    with pytest.raises(SystemExit, match="offers atomic writes of 0 bytes, not of 16384"):
        application.begin()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("iscsi-standard-noslog-raw-atomic-nasonly", "iscsi offers none"),
        ("nvme_tcp-standard-noslog-raw-atomic-nasonly", "nvme_tcp offers none"),
        ("nvme_tcp_single-standard-noslog-ext4-atomic-nasonly", "ext4 is there"),
    ],
)
def test_cells_without_such_a_bare_disk_are_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cell.parse(name)


def test_a_bare_nvme_disk_is_taken() -> None:
    assert Cell.parse("nvme_tcp_single-standard-noslog-raw-atomic-bothdie")

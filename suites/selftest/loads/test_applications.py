"""Applications as the guest runs them, on a real directory: written, read back, judged, tampered with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.loads.load_host import run_load
from suites.selftest.unit.oracles.test_transactions import SETTLED_APART, ledger_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import CHOICES, with_those_beside
from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Place
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Begin, Hello, Ledger, OperationKind
from torture.oracles.verdict.guarantee import Terms, Verdict
from torture.oracles.verdict.judgement import Findings
from vmimages.client.load import read
from vmimages.client.load.applications import ApplicationError, Transaction, application_of, found
from vmimages.client.load.blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder

HELLO = Hello(t_ms=0.0, trial=7, mode="application")
SQLITE = [choice.name for choice in CHOICES if choice.name.startswith("sqlite")]


class Written:
    """One finished load, and a copy of its directory from a moment when no writer was writing."""

    def __init__(
        self,
        base: Path,
        workload: ApplicationWorkload,
        *,
        place: Place | None = None,
        stop_after: int = 90,
        pause_after: int = 50,
    ) -> None:
        self.workload = workload
        self.job = workload.job(seed=7, place=place or Place(directory=str(base)))
        self.directory, self.earlier = Path(self.job["directory"]), base / "earlier"
        application_of(self.job).prepare()
        self.ledger = run_load(
            self.job, stop_after=stop_after, pause_after=pause_after, meanwhile=self.copy
        )

    def copy(self) -> None:
        """Keep how it is now."""
        shutil.copytree(self.directory, self.earlier)

    def durable(self, writer: int) -> int:
        """How many transactions of a writer may not be gone: of lazy ones those that were settled."""
        begun = [event for event in self.ledger.events if isinstance(event, Begin)]
        others = found(whole=[event.seq for event in begun if event.writer != writer])
        document = {"trial": 7, "mode": "application", **others, "complete": True}
        return judged(self.workload, self.ledger, document).lost

    def judged(self, directory: Path, *, began: tuple[Begin, ...] = ()) -> Findings:
        """The state that is there; `began` is under way beside the ledger's operations."""
        document = read.run(self.job | {"directory": str(directory)})
        ledger = replace(self.ledger, events=(*self.ledger.events, *began))
        return judged(self.workload, ledger, document)


def judged(workload: ApplicationWorkload, ledger: Ledger, document: dict[str, Any]) -> Findings:
    """The workload's judgement of a trial that left this ledger and this read-back."""
    evidence = Evidence(
        spec={},
        cut=CutDocument(),
        ledger=ledger,
        tools=(),
        readbacks={workload.readback: json.dumps(document)},
    )
    return workload.judge(evidence, Terms(), after_repair=False)


@pytest.fixture(scope="module", params=SQLITE)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    (workload,) = (choice.value for choice in CHOICES if choice.name == request.param)
    assert isinstance(workload, ApplicationWorkload)
    return Written(tmp_path_factory.mktemp("application"), workload)


def test_committed_transactions_read_back_intact(written: Written) -> None:
    assert written.ledger.acknowledged >= 10
    findings = written.judged(written.directory)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())


def test_an_older_state_is_one_that_went_back(written: Written) -> None:
    findings = written.judged(written.earlier)
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.lost > 0


@pytest.fixture
def tampered(written: Written, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written.directory, tmp_path / "tampered"))


def _change(directory: Path, sql: str) -> None:
    """Run these statements in the database of the first writer."""
    with closing(sqlite3.connect(directory / "0.sqlite3")) as database:
        database.executescript(sql)


_IN_PART = {
    "one row less": "DELETE FROM entries"
    " WHERE rowid = (SELECT min(rowid) FROM entries WHERE rows > 1)",
    "another payload": "UPDATE entries SET payload = x'00'"
    " WHERE seq = (SELECT min(seq) FROM entries)",
    "a count too large for a list": f"UPDATE entries SET rows = {1 << 62} WHERE rowid = 1",
    "two counts": "UPDATE entries SET rows = 9"
    " WHERE rowid = (SELECT max(rowid) FROM entries WHERE rows > 1)",
    "another total": "UPDATE totals SET transactions = transactions + 1",
    "one transaction less": "DELETE FROM entries WHERE seq = (SELECT min(seq) FROM entries);"
    " UPDATE totals SET transactions = transactions - 1",
}


@pytest.mark.parametrize("sql", _IN_PART.values(), ids=_IN_PART)
def test_a_transaction_in_part_is_corruption(written: Written, tampered: Path, sql: str) -> None:
    _change(tampered, sql)
    assert written.judged(tampered).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    ("column", "value"),
    [("seq", "NULL"), ("row", "'text'"), ("rows", "0.5"), ("payload", "NULL"), ("payload", "7")],
)
def test_a_row_of_other_kinds_is_complained_of(
    written: Written, tampered: Path, column: str, value: str
) -> None:
    """So it is in a page of which some sectors are older than others."""
    _change(tampered, f"UPDATE entries SET {column} = {value} WHERE rowid = 1")
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert any("database 0 has a row of" in reason for reason in findings.reasons)


def test_a_schema_that_cannot_even_be_quoted_is_beyond_repair(
    written: Written, tampered: Path
) -> None:
    _change(
        tampered,
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET name = CAST(x'ff' AS TEXT), sql = 'CREATE'",
    )
    assert written.judged(tampered).verdict is Verdict.UNREPAIRABLE


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and no more", None])
def test_a_database_that_cannot_be_used_is_beyond_repair(
    written: Written, tampered: Path, content: bytes | None
) -> None:
    for path in tampered.glob("1.sqlite3*"):
        path.unlink()
    if content is not None:
        (tampered / "1.sqlite3").write_bytes(content)
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.UNREPAIRABLE
    assert findings.lost == written.durable(1) > 0


def _workload(name: str) -> Any:
    return next(choice.value for choice in CHOICES if choice.name == name)


@pytest.mark.parametrize("name", SQLITE)
def test_a_trial_of_it_has_this_load_alone(name: str) -> None:
    workload = _workload(name)
    assert with_those_beside(workload) == (workload,)


def test_only_loads_that_are_not_synced_each_time_have_orders_of_their_own() -> None:
    workloads = [choice.value for choice in CHOICES]
    applications = [load for load in workloads if isinstance(load, ApplicationWorkload)]
    without = [load.name for load in applications if not load.has_one_order]
    assert sorted(without) == ["atomic", "sqlitewal_normal"]


def test_a_write_ahead_log_may_be_gone_although_another_writers_was_settled(tmp_path: Path) -> None:
    workload = _workload("sqlitewal_normal")
    job = workload.job(seed=7, place=Place(directory=str(tmp_path)))
    application = application_of(job)
    application.prepare()
    writers = [application.performer(writer) for writer in (0, 1)]
    ledger = ledger_of(SETTLED_APART, writers=2)
    for event in ledger.events:
        if isinstance(event, Begin):
            transaction = Transaction(kind=event.kind, what=dict(event.what))
            writers[event.writer].perform(transaction, event.seq)
    left = tmp_path / "left"
    shutil.copytree(job["directory"], left)
    application.end()
    (left / "0.sqlite3-wal").unlink()
    document = read.run(job | {"directory": str(left)})
    assert document["whole"] == [1, 2]
    findings = judged(workload, Ledger(events=(HELLO, *ledger.events)), document)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())


def test_open_files_of_writers_are_closed_with_the_load(tmp_path: Path) -> None:
    workload = _workload("sqlitewal_full")
    job = workload.job(seed=7, place=Place(directory=str(tmp_path)))
    application = application_of(job)
    application.prepare()
    performer = application.performer(0)
    transaction = Transaction(kind=OperationKind.TRANSACTION, what={"sizes": [10]})
    performer.perform(transaction, 1)
    log = Path(job["directory"], "0.sqlite3-wal")
    assert log.exists()
    application.end()
    assert not log.exists(), "who closes the database last removes its log"
    with pytest.raises(ApplicationError, match="closed"):
        performer.perform(transaction, 2)


def test_preparation_is_the_same_for_every_seed() -> None:
    workload = _workload("sqlitewal_full")
    place = Place(directory="/mnt")
    one, other = (workload.job(seed=seed, place=place) for seed in (1, 2))
    assert workload.prepare(one) == workload.prepare(other)
    assert "sqlite" in workload.prepare(one)


# Atomic writes on an image of a disk: whole, absent, torn and beside old data.

_ATOMIC = _workload("atomic")
_STORY = [("begin", 1), ("done", 1), ("begin", 2), ("done", 2), ("begin", 3)]
"""Writes 1 and 2 are acknowledged, 3 is under way."""


def _job_on(disk: Path) -> dict[str, Any]:
    job: dict[str, Any] = _ATOMIC.job(seed=7, place=Place(device=str(disk)))
    return job


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A disk with these three writes, each in the unit before its own number."""
    image = tmp_path / "disk"
    job = _job_on(image)
    encoder, blocks = Encoder(7), job["unit_bytes"] // BLOCK_BYTES
    with image.open("wb") as file:
        for seq in (1, 2, 3):
            for index in range((seq - 1) * blocks, seq * blocks):
                file.write(encoder.block(file=0, seq=seq, index=index))
        file.truncate(job["units"] * job["unit_bytes"])
    return image


def _verdict(disk: Path) -> tuple[Verdict | None, int]:
    job = _job_on(disk)
    ledger = ledger_of(_STORY, writers=job["writers"])
    whole = Ledger(events=(HELLO, *ledger.events))
    findings = judged(_ATOMIC, whole, read.run(job))
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
    application = application_of(_job_on(disk))
    first, second = (
        [planner.draw() for _ in range(24)] for planner in map(application.planner, (0, 1))
    )
    assert [one.is_durable for one in first] == ([False] * 11 + [True]) * 2
    units = [{one.what.get("unit") for one in drawn} - {None} for drawn in (first, second)]
    assert [len(own) for own in units] == [22, 22]
    assert not units[0] & units[1]


def test_a_disk_that_offers_none_is_refused(disk: Path) -> None:
    application = application_of(_job_on(disk))
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

"""Applications as the guest runs them, on a real directory: written, read back, judged, tampered with."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.loads.load_host import Host
from suites.selftest.unit.oracles.test_transactions import SETTLED_APART, ledger_of
from torture.choices.workloads import CHOICES, with_those_beside
from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Place
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Begin, Hello, Ledger, OperationKind
from torture.oracles.verdict.guarantee import Terms, Verdict
from torture.oracles.verdict.judgement import Findings
from vmimages.client.load import read, write
from vmimages.client.load.applications import ApplicationError, Transaction, application_of, found

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
        ours, guests = socket.socketpair()
        with ours, guests:
            host = Host(
                ours,
                stop_after=stop_after,
                pause_after=pause_after,
                meanwhile=self.copy,
            )
            assert write.run(self.job, guests.fileno()) == write.EXIT_OK
            self.ledger: Ledger = host.ledger()

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


def _one_row_less(database: sqlite3.Connection) -> None:
    database.execute(
        "DELETE FROM entries WHERE rowid = (SELECT min(rowid) FROM entries WHERE rows > 1)"
    )


def _another_payload(database: sqlite3.Connection) -> None:
    database.execute(
        "UPDATE entries SET payload = x'00' WHERE seq = (SELECT min(seq) FROM entries)"
    )


def _another_count(database: sqlite3.Connection) -> None:
    """A count of rows that is too large for a list."""
    database.execute(f"UPDATE entries SET rows = {1 << 62} WHERE rowid = 1")


def _two_counts(database: sqlite3.Connection) -> None:
    database.execute(
        "UPDATE entries SET rows = 9 WHERE rowid = (SELECT max(rowid) FROM entries WHERE rows > 1)"
    )


def _another_total(database: sqlite3.Connection) -> None:
    database.execute("UPDATE totals SET transactions = transactions + 1")


def _one_transaction_less(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM entries WHERE seq = (SELECT min(seq) FROM entries)")
    database.execute("UPDATE totals SET transactions = transactions - 1")


@pytest.mark.parametrize(
    "tamper",
    [
        _one_row_less,
        _another_payload,
        _another_count,
        _two_counts,
        _another_total,
        _one_transaction_less,
    ],
)
def test_a_transaction_in_part_is_corruption(
    written: Written, tmp_path: Path, tamper: Callable[[sqlite3.Connection], None]
) -> None:
    tampered = tmp_path / "tampered"
    shutil.copytree(written.directory, tampered)
    with sqlite3.connect(tampered / "0.sqlite3") as database:
        tamper(database)
    database.close()
    assert written.judged(tampered).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    ("column", "value"),
    [("seq", "NULL"), ("row", "'text'"), ("rows", "0.5"), ("payload", "NULL"), ("payload", "7")],
)
def test_a_row_of_other_kinds_is_complained_of(
    written: Written, tmp_path: Path, column: str, value: str
) -> None:
    """So it is in a page of which some sectors are older than others."""
    tampered = tmp_path / "tampered"
    shutil.copytree(written.directory, tampered)
    with sqlite3.connect(tampered / "0.sqlite3") as database:
        database.execute(f"UPDATE entries SET {column} = {value} WHERE rowid = 1")
    database.close()
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert any("database 0 has a row of" in reason for reason in findings.reasons)


def test_a_schema_that_cannot_even_be_quoted_is_beyond_repair(
    written: Written, tmp_path: Path
) -> None:
    tampered = tmp_path / "tampered"
    shutil.copytree(written.directory, tampered)
    with sqlite3.connect(tampered / "0.sqlite3") as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET name = CAST(x'ff' AS TEXT), sql = 'CREATE'")
    database.close()
    assert written.judged(tampered).verdict is Verdict.UNREPAIRABLE


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and no more", None])
def test_a_database_that_cannot_be_used_is_beyond_repair(
    written: Written, tmp_path: Path, content: bytes | None
) -> None:
    tampered = tmp_path / "tampered"
    shutil.copytree(written.directory, tampered)
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

"""SQLite: each writer has a database of its own, and commits rows that identify themselves.

The job's `journal` is `PRAGMA journal_mode` and `synchronous` that pragma. Where a commit is not
durable when it returns (https://sqlite.org/pragma.html#pragma_synchronous) it is lazy. From time to
time a writer settles all earlier commits, by one of two means. One is a checkpoint of the
write-ahead log, the other a sync of the directory from which the rollback journal was unlinked.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress

from . import (
    LAZY_TRANSACTION,
    TRANSACTION,
    Application,
    ApplicationError,
    Performer,
    Transaction,
    TransactionPlanner,
    found_of_each,
)
from .rows import payload_of

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DURABLE = (("wal", "full"), ("wal", "extra"), ("delete", "extra"))
"""The settings with which every commit is durable by itself: in `delete` mode the journal's removal
has to be synced."""
_KINDS = (int, int, int, bytes)
"""The types of a row as it was written; SQLite does not hold a value to its column's type."""
_ROWS_MAX = 4
_PAYLOAD_BYTES_MAX = 6000
_SETTLE_IN = 4
_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE entries (seq INTEGER, row INTEGER, rows INTEGER, payload BLOB, PRIMARY KEY (seq, row));
CREATE INDEX by_payload ON entries (payload);
CREATE TABLE totals (transactions INTEGER);
INSERT INTO totals VALUES (0);
"""


class _Planner(TransactionPlanner):
    def __init__(self, job: dict[str, Any], writer: int) -> None:
        super().__init__(job, writer)
        self._is_durable = (job["journal"], job["synchronous"]) in _DURABLE
        self._unsettled = False

    def draw(self) -> Transaction:
        if self._unsettled and self.dice.below(_SETTLE_IN) == 0:
            self._unsettled = False
            return Transaction(kind=TRANSACTION, what={"settle": True})
        self._unsettled = not self._is_durable
        sizes = [
            1 + self.dice.below(_PAYLOAD_BYTES_MAX) for _ in range(1 + self.dice.below(_ROWS_MAX))
        ]
        kind = TRANSACTION if self._is_durable else LAZY_TRANSACTION
        return Transaction(kind=kind, what={"sizes": sizes})


class _Performer(Performer):
    def __init__(self, application: Sqlite, writer: int) -> None:
        super().__init__()
        self._application = application
        self._writer = writer
        self._connection: sqlite3.Connection | None = None

    def perform(self, transaction: Transaction, seq: int) -> None:
        begun_ns = time.monotonic_ns()
        try:
            if self._connection is None:
                self._connection = self._application.connect_for_load(self._writer)
            if "settle" in transaction.what:
                self._settle(self._connection)
            else:
                self._commit(self._connection, transaction.what["sizes"], seq)
        except sqlite3.Error as error:
            self.step = f"{type(error).__name__}: {error}"
            raise ApplicationError(self.step) from error
        if transaction.is_durable:
            self.durable_call_took(begun_ns)

    def _commit(self, connection: sqlite3.Connection, sizes: list[int], seq: int) -> None:
        trial = self._application.job["trial"]
        connection.execute("BEGIN IMMEDIATE")
        for row, size in enumerate(sizes):
            payload = payload_of(trial, seq, row, size)
            connection.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?)", (seq, row, len(sizes), payload)
            )
        connection.execute("UPDATE totals SET transactions = transactions + 1")
        connection.execute("COMMIT")

    def _settle(self, connection: sqlite3.Connection) -> None:
        if self._application.job["journal"] == "wal":
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return
        self.step = "fsync"
        descriptor = os.open(self._application.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Sqlite(Application):
    """Its databases are files of one directory."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job)
        self._of_load: list[sqlite3.Connection] = []

    def prepare(self) -> None:
        """Make an empty database for each writer."""
        os.mkdir(self.directory)  # noqa: PTH102 - pathlib is slow to import
        for writer in range(self.job["writers"]):
            with closing(self._connect(writer)) as connection:
                connection.executescript(_SCHEMA)

    def connect_for_load(self, writer: int) -> sqlite3.Connection:
        """A connection to a writer's database, which lasts until the load ends."""
        connection = self._connect(writer)
        self._of_load.append(connection)
        return connection

    def end(self) -> None:
        """Close the writers' connections."""
        while self._of_load:
            with suppress(sqlite3.Error):  # its disk may be gone, and its writer has reported that
                self._of_load.pop().close()

    def _connect(self, writer: int) -> sqlite3.Connection:
        """A connection as the job sets it; transactions begin explicitly; any thread may close it."""
        connection = sqlite3.connect(
            f"{self.directory}/{writer}.sqlite3",
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute(f"PRAGMA journal_mode={self.job['journal']}")
            connection.execute(f"PRAGMA synchronous={self.job['synchronous']}")
        except Exception:  # whatever a garbled file decodes to
            connection.close()
            raise
        return connection

    def planner(self, writer: int) -> TransactionPlanner:
        """Commits of a few rows."""
        return _Planner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """It has a connection of its own."""
        return _Performer(self, writer)

    def read(self) -> dict[str, Any]:
        """The rows of every database, and the output of its `PRAGMA integrity_check`."""
        return found_of_each(
            self.job["writers"],
            self._read_one,
            noun="database",
            errors=(OSError, sqlite3.Error, UnicodeDecodeError),  # of a schema it quotes, the last
        )

    def _read_one(
        self, writer: int, whole: list[int], parts: dict[int, str], complaints: list[str]
    ) -> None:
        os.stat(f"{self.directory}/{writer}.sqlite3")  # noqa: PTH116 - sqlite3 would make a new one
        with closing(self._connect(writer)) as connection:
            said = [str(line[0]) for line in connection.execute("PRAGMA integrity_check")]
            complaints += [f"database {writer}: {line}" for line in said if line != "ok"]
            entries = connection.execute("SELECT seq, row, rows, payload FROM entries NOT INDEXED")
            rows = self._rows_of(writer, entries, complaints)
            (total,) = connection.execute("SELECT sum(transactions) FROM totals").fetchone()
        for seq, seen in rows.items():
            wrong = self._wrong_with(seq, seen)
            if wrong:
                parts[seq] = wrong
            else:
                whole.append(seq)
        if total != len(rows):
            complaints.append(f"database {writer} counts {total} transactions and has {len(rows)}")

    @staticmethod
    def _rows_of(
        writer: int, entries: Iterable[tuple[Any, ...]], complaints: list[str]
    ) -> dict[int, dict[int, tuple[int, bytes]]]:
        rows: dict[int, dict[int, tuple[int, bytes]]] = {}
        for entry in entries:
            kinds = tuple(type(value) for value in entry)
            if kinds != _KINDS:
                names = ", ".join(kind.__name__ for kind in kinds)
                complaints.append(f"database {writer} has a row of {names}")
                continue
            seq, row, count, payload = entry
            rows.setdefault(seq, {})[row] = (count, payload)
        return rows

    def _wrong_with(self, seq: int, seen: dict[int, tuple[int, bytes]]) -> str:
        counts = sorted({count for count, _ in seen.values()})
        if counts != [len(seen)] or sorted(seen) != list(range(len(seen))):
            return f"rows {sorted(seen)} of {', '.join(map(str, counts))}"
        for row, (_, payload) in seen.items():
            if payload != payload_of(self.job["trial"], seq, row, len(payload)):
                return f"row {row} holds something else"
        return ""


APPLICATION = Sqlite

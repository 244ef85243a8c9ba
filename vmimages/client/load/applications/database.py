"""A database on its own server: the common part of all, from first start to read-back."""

from __future__ import annotations

import signal

from . import Application, ApplicationError, Performer, found
from .rows import TABLES, TOTALS, Rows, RowsPlanner
from .server import RECOVERY_PATIENCE_S, CheckHungError, Server, ServerRefusedError, ends_at_once

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import Transaction, TransactionPlanner

_BEGIN_DEADLINE_S = 100.0


class Database(Application):
    """One server for all writers, a connection for each; a subclass sets the following.

    `program`: the program named when the server does not start. `error`: the exception of its
    driver. `schema`: the statements that make its tables. `settled` and `at_once`: the signals that
    end it properly, and as a crash would.
    """

    program: str
    error: type[Exception]
    schema: tuple[str, ...]
    settled: signal.Signals
    at_once: signal.Signals
    server: Server

    def install(self) -> None:
        """Make an empty server's data in the directory; the caller syncs all."""
        raise NotImplementedError

    def connect(self, *, is_new: bool = False) -> Any:
        """A connection to the tables' database, which does not exist yet where the server `is_new`."""
        raise NotImplementedError

    def commit(
        self, connection: Any, transaction: Transaction, performer: DatabasePerformer
    ) -> None:
        """Carry out a transaction, and report to the performer how long its durable call took."""
        raise NotImplementedError

    def read_table(self, cursor: Any, table: str, rows: Rows) -> None:
        """Read the rows of one of `TABLES`, past every index."""
        raise NotImplementedError

    def error_text(self, error: Exception) -> str:
        """The text of an error of its driver."""
        return repr(error)

    def check(self) -> list[str]:
        """The complaints of its own checks while it runs."""
        raise NotImplementedError

    def check_stopped(self) -> list[str]:
        """The complaints of its own checks once it has ended."""
        return []

    def prepare(self) -> None:
        """Make a new server's data, with its tables."""
        self.install()
        self.begin()
        connection = self.connect(is_new=True)
        cursor = connection.cursor()
        for statement in self.schema:
            cursor.execute(statement)
        for writer in range(self.job["writers"]):
            cursor.execute(f"INSERT INTO {TOTALS} VALUES ({writer}, 0)")
        connection.commit()
        connection.close()
        self.server.stop(self.settled)

    def begin(self) -> None:
        """Start the server."""
        self.server.start(deadline_s=_BEGIN_DEADLINE_S)

    def planner(self, writer: int) -> TransactionPlanner:
        """Transactions of a few rows."""
        return RowsPlanner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """A performer with a connection of its own."""
        return DatabasePerformer(self, writer)

    def end(self) -> None:
        """Stop the server: properly, or at once, so that its log is all there is."""
        self.server.stop(self.at_once if ends_at_once(self.job) else self.settled)

    def read(self) -> dict[str, Any]:
        """All rows, and the complaints of the database's checks, after the server's own recovery."""
        try:
            self.server.start(deadline_s=RECOVERY_PATIENCE_S)
        except ServerRefusedError as refusal:
            self.server.stop(self.at_once)
            refused = f"{self.program}: {refusal}"
            return found(whole=[], refused=refused, log=self.server.log())
        rows = Rows(self.job["trial"])
        for table in (*TABLES, TOTALS):  # if one table cannot be read, the others are known
            try:
                self._read(table, rows)
            except self.error as error:
                rows.complaints.append(self.error_text(error))
        unchecked = _ask(self.check, rows)
        if not self.server.stop(self.settled):
            rows.complaints.append("the server does not stop")
        log = self.server.log()
        unchecked += _ask(self.check_stopped, rows)
        whole, parts = rows.whole_and_damaged()
        return found(
            whole=whole, parts=parts, complaints=rows.complaints, log=log, unchecked=unchecked
        )

    def _read(self, table: str, rows: Rows) -> None:
        connection = self.connect()
        cursor = connection.cursor()
        if table == TOTALS:
            cursor.execute(f"SELECT writer, transactions FROM {TOTALS}")
            rows.compare(cursor.fetchall())
        else:
            self.read_table(cursor, table, rows)
        connection.close()


def _ask(check: Callable[[], list[str]], rows: Rows) -> list[str]:
    """Add a checker's complaints; returns the reason where it did not end."""
    try:
        rows.complaints += check()
    except CheckHungError as hung:
        return [str(hung)]
    return []


class DatabasePerformer(Performer):
    """One writer, and its connection."""

    def __init__(self, database: Database, writer: int) -> None:
        super().__init__()
        self.writer = writer
        self.seq = 0
        self._database = database
        self._connection: Any = None

    def perform(self, transaction: Transaction, seq: int) -> None:
        """Return once the server has committed it; raises `ApplicationError` in the server's words."""
        database = self._database
        self.seq = seq
        try:
            if self._connection is None:
                self._connection = database.connect()
            database.commit(self._connection, transaction, self)
        except database.error as error:
            self.step = f"{database.error_text(error)}; the server: {database.server.last_words()}"
            raise ApplicationError(self.step) from error

"""PostgreSQL: one server, a connection for each writer, transactions of rows in two tables.

The job's `synchronous_commit` is that setting; with `commits` "lazy" some transactions set it to `on` for
themselves, and are durable with all before them, as there is one write-ahead log
(https://www.postgresql.org/docs/17/wal-async-commit.html). Its memory is small. Data checksums are on, as
are `fsync` and `full_page_writes`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

from . import Application, ApplicationError, Performer, found
from .rows import TABLES, TOTALS, Rows, RowsPlanner, rows_by_table
from .server import (
    RECOVERY_PATIENCE_S,
    Server,
    ServerRefusedError,
    complaints_of,
    ends_at_once,
)

_DEBIANS_MODULES = "/usr/lib/python3/dist-packages"
if _DEBIANS_MODULES not in sys.path:  # the load runs without them, which begins faster
    sys.path.append(_DEBIANS_MODULES)
import psycopg2  # noqa: E402

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from . import Transaction, TransactionPlanner

_PROGRAMS = "/usr/lib/postgresql/17/bin"
_USER = "postgres"
_FOLDER = "/run/torture-postgres"
_DATABASE = "postgres"
_BEGIN_DEADLINE_S = 100.0
_INITDB_DEADLINE_S = 200.0
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": _FOLDER,
    "dynamic_shared_memory_type": "sysv",
    "max_connections": "16",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "shared_buffers": "2MB",
    "fsync": "on",
    "full_page_writes": "on",
}
_OFTEN = {
    "backend_flush_after": "64kB",
    "bgwriter_delay": "50ms",
    "bgwriter_flush_after": "64kB",
    "checkpoint_timeout": "30s",
    "max_wal_size": "8MB",
    "min_wal_size": "2MB",
}
"""So that pages leave the server, and checkpoints happen, within seconds."""
_SCHEMA = (
    "CREATE EXTENSION amcheck",
    *(
        statement
        for table in TABLES
        for statement in (
            f"CREATE TABLE {table} (seq bigint, row int, rows int, writer int, digest text,"
            " payload bytea, PRIMARY KEY (seq, row))",
            # what is large is kept apart as it is: compressed it would not be large
            f"ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL",
            f"CREATE INDEX {table}_by_digest ON {table} (digest)",
        )
    ),
    f"CREATE TABLE {TOTALS} (writer int PRIMARY KEY, transactions bigint)",
)


class _Performer(Performer):
    def __init__(self, application: Postgres, writer: int) -> None:
        super().__init__()
        self._application = application
        self._writer = writer
        self._connection: Any = None

    def perform(self, transaction: Transaction, seq: int) -> None:
        try:
            if self._connection is None:
                self._connection = self._application.connect()
            self._commit(transaction, seq)
        except psycopg2.Error as error:
            said = f"{type(error).__name__}: {str(error).strip()}"
            self.step = f"{said}; the server: {self._application.server.last_words()}"
            raise ApplicationError(self.step) from error

    def _commit(self, transaction: Transaction, seq: int) -> None:
        job = self._application.job
        sizes = transaction.what["sizes"]
        cursor = self._connection.cursor()
        if transaction.is_durable and job["commits"] == "lazy":
            cursor.execute("SET LOCAL synchronous_commit TO on")
        for table, rows in rows_by_table(job["trial"], seq, sizes).items():
            values: list[object] = []
            for row, payload in rows:
                values += (seq, row, len(sizes), self._writer, f"{seq} {row}")
                values.append(psycopg2.Binary(payload))
            places = ", ".join(["(%s, %s, %s, %s, md5(%s), %s)"] * len(rows))
            cursor.execute(f"INSERT INTO {table} VALUES {places}", values)
        cursor.execute(
            f"UPDATE {TOTALS} SET transactions = transactions + 1 WHERE writer = %s",
            (self._writer,),
        )
        begun_ns = time.monotonic_ns()
        self._connection.commit()
        if transaction.is_durable:
            self.durable_call_took(begun_ns)


class Postgres(Application):
    """Its cluster is a directory."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job)
        settings = _SETTINGS | {"synchronous_commit": job["synchronous_commit"]}
        if not ends_at_once(job):
            settings |= _OFTEN
        options = [word for name in settings for word in ("-c", f"{name}={settings[name]}")]
        self.server = Server(
            argv=[f"{_PROGRAMS}/postgres", "-D", self.directory, *options],
            folder=_FOLDER,
            user=_USER,
            ready="database system is ready to accept connections",
        )

    def connect(self) -> Any:
        """A connection; raises `psycopg2.Error`."""
        return psycopg2.connect(host=_FOLDER, user=_USER, dbname=_DATABASE)

    def prepare(self) -> None:
        """A new cluster, with its tables."""
        os.mkdir(self.directory, 0o700)  # noqa: PTH102 - pathlib is slow to import
        shutil.chown(self.directory, _USER, _USER)
        command = [f"{_PROGRAMS}/initdb", "-D", self.directory, "-U", _USER, "-A", "trust"]
        command += ["--no-locale", "-E", "UTF8", "--data-checksums", "--wal-segsize=1"]
        subprocess.run(
            [*command, "--no-sync"],  # whoever asked syncs all
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            user=_USER,
            timeout=_INITDB_DEADLINE_S,
        )
        self.begin()
        connection = self.connect()
        cursor = connection.cursor()
        for statement in _SCHEMA:
            cursor.execute(statement)
        for writer in range(self.job["writers"]):
            cursor.execute(f"INSERT INTO {TOTALS} VALUES (%s, 0)", (writer,))
        connection.commit()
        connection.close()
        self.server.stop(signal.SIGINT)

    def begin(self) -> None:
        """Start the server."""
        self.server.start(deadline_s=_BEGIN_DEADLINE_S)

    def planner(self, writer: int) -> TransactionPlanner:
        """Transactions of a few rows."""
        return RowsPlanner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """It has a connection of its own."""
        return _Performer(self, writer)

    def end(self) -> None:
        """Stop the server: with a checkpoint, or at once, so that its log is all there is."""
        self.server.stop(signal.SIGQUIT if ends_at_once(self.job) else signal.SIGINT)

    def read(self) -> dict[str, Any]:
        """All rows, and what `pg_amcheck` and `pg_checksums` say, after the server's own recovery."""
        try:
            self.server.start(deadline_s=RECOVERY_PATIENCE_S)
        except ServerRefusedError as refusal:
            self.server.stop(signal.SIGQUIT)
            return found(whole=[], refused=f"postgres: {refusal}", log=self.server.log())
        rows = Rows(self.job["trial"])
        for table in (*TABLES, TOTALS):  # of one that cannot be read, the others are known
            try:
                self._read(table, rows)
            except psycopg2.Error as error:
                rows.complaints.append(f"{type(error).__name__}: {str(error).strip()}")
        checked = [f"{_PROGRAMS}/pg_amcheck", "-h", _FOLDER, "-U", _USER, "--heapallindexed"]
        checked += [f"--table=public.{table}" for table in (*TABLES, TOTALS)]
        rows.complaints += complaints_of([*checked, _DATABASE], user=_USER)
        if not self.server.stop(signal.SIGINT):
            rows.complaints.append("the server does not stop")
        log = self.server.log()
        rows.complaints += complaints_of(
            [f"{_PROGRAMS}/pg_checksums", "--check", "-D", self.directory], user=_USER
        )
        whole, parts = rows.sorted_out()
        return found(whole=whole, parts=parts, complaints=rows.complaints, log=log)

    def _read(self, table: str, rows: Rows) -> None:
        connection = self.connect()
        cursor = connection.cursor()
        cursor.execute("SET enable_indexscan TO off")
        cursor.execute("SET enable_bitmapscan TO off")
        if table == TOTALS:
            cursor.execute(f"SELECT writer, transactions FROM {TOTALS}")
            rows.compare(cursor.fetchall())
        else:
            cursor.execute(
                f"SELECT seq, row, rows, writer, length(payload), md5(payload) FROM {table}"
            )
            rows.add(table, cursor.fetchall())
        connection.close()


APPLICATION = Postgres

"""PostgreSQL: one server, a connection for each writer, transactions of rows in two tables.

The job's `synchronous_commit` is that setting. With `commits` "lazy" some transactions set it to
`on` for themselves. These are durable with all before them, as there is one write-ahead log
(https://www.postgresql.org/docs/17/wal-async-commit.html). Its memory is small. Data checksums are
on, as are `fsync` and `full_page_writes`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

from .database import Database
from .rows import TABLES, TOTALS, rows_by_table
from .server import Server, complaints_of, ends_at_once

_DEBIANS_MODULES = "/usr/lib/python3/dist-packages"
if _DEBIANS_MODULES not in sys.path:  # the load runs without them, for a faster start
    sys.path.append(_DEBIANS_MODULES)
import psycopg2  # noqa: E402

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from . import Transaction
    from .database import DatabasePerformer
    from .rows import Rows

_PROGRAMS = "/usr/lib/postgresql/17/bin"
_USER = "postgres"
_FOLDER = "/run/torture-postgres"
_DATABASE = "postgres"
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
            # large values are stored apart and uncompressed: compressed they would not be large
            f"ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL",
            f"CREATE INDEX {table}_by_digest ON {table} (digest)",
        )
    ),
    f"CREATE TABLE {TOTALS} (writer int PRIMARY KEY, transactions bigint)",
)


class Postgres(Database):
    """Its cluster is a directory; the signal that ends it properly makes a checkpoint."""

    program = "postgres"
    error = psycopg2.Error
    schema = _SCHEMA
    settled = signal.SIGINT
    at_once = signal.SIGQUIT

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

    def install(self) -> None:
        """A new cluster."""
        os.mkdir(self.directory, 0o700)  # noqa: PTH102 - pathlib is slow to import
        shutil.chown(self.directory, _USER, _USER)
        command = [f"{_PROGRAMS}/initdb", "-D", self.directory, "-U", _USER, "-A", "trust"]
        command += ["--no-locale", "-E", "UTF8", "--data-checksums", "--wal-segsize=1"]
        subprocess.run(
            [*command, "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            user=_USER,
            timeout=_INITDB_DEADLINE_S,
        )

    def connect(self, *, is_new: bool = False) -> Any:
        """A connection to the database that each cluster has."""
        return psycopg2.connect(host=_FOLDER, user=_USER, dbname=_DATABASE)

    def error_text(self, error: Exception) -> str:
        """The error's text in one line."""
        return f"{type(error).__name__}: {str(error).strip()}"

    def commit(
        self, connection: Any, transaction: Transaction, performer: DatabasePerformer
    ) -> None:
        """One `INSERT` for each table."""
        sizes, seq, writer = transaction.what["sizes"], performer.seq, performer.writer
        cursor = connection.cursor()
        if transaction.is_durable and self.job["commits"] == "lazy":
            cursor.execute("SET LOCAL synchronous_commit TO on")
        for table, rows in rows_by_table(self.job["trial"], seq, sizes).items():
            values: list[object] = []
            for row, payload in rows:
                values += (seq, row, len(sizes), writer, f"{seq} {row}")
                values.append(psycopg2.Binary(payload))
            places = ", ".join(["(%s, %s, %s, %s, md5(%s), %s)"] * len(rows))
            cursor.execute(f"INSERT INTO {table} VALUES {places}", values)
        cursor.execute(
            f"UPDATE {TOTALS} SET transactions = transactions + 1 WHERE writer = %s", (writer,)
        )
        begun_ns = time.monotonic_ns()
        connection.commit()
        if transaction.is_durable:
            performer.durable_call_took(begun_ns)

    def read_table(self, cursor: Any, table: str, rows: Rows) -> None:
        """From the table itself."""
        cursor.execute("SET enable_indexscan TO off")
        cursor.execute("SET enable_bitmapscan TO off")
        cursor.execute(f"SELECT seq, row, rows, writer, length(payload), md5(payload) FROM {table}")
        rows.add(table, cursor.fetchall())

    def check(self) -> list[str]:
        """The output of `pg_amcheck`."""
        checked = [f"{_PROGRAMS}/pg_amcheck", "-h", _FOLDER, "-U", _USER, "--heapallindexed"]
        checked += [f"--table=public.{table}" for table in (*TABLES, TOTALS)]
        return complaints_of([*checked, _DATABASE], user=_USER)

    def check_stopped(self) -> list[str]:
        """The output of `pg_checksums`, which needs the cluster stopped."""
        checked = [f"{_PROGRAMS}/pg_checksums", "--check", "-D", self.directory]
        return complaints_of(checked, user=_USER)


APPLICATION = Postgres

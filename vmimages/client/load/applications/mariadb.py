"""MariaDB: one server, a connection for each writer, transactions of rows in InnoDB's tables.

The job's `flush` is `innodb_flush_log_at_trx_commit`, and `binlog` is `sync_binlog`, or "off" without a
binary log. With `commits` "lazy" some transactions are committed while that is 1 which makes the others
lazy, and are durable with all before them, as there is one log. Memory and log are small.
`innodb_doublewrite` is on, as are checksums.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
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
import pymysql  # noqa: E402

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from . import Transaction, TransactionPlanner

_USER = "root"
_FOLDER = "/run/torture-mariadb"
_SOCKET = f"{_FOLDER}/socket"
_DATABASE = "torture"
_BEGIN_DEADLINE_S = 100.0
_INSTALL_DEADLINE_S = 300.0
_OPTIONS = (
    f"--socket={_SOCKET}",
    f"--pid-file={_FOLDER}/pid",
    f"--tmpdir={_FOLDER}",
    f"--user={_USER}",
    "--skip-networking",
    "--skip-grant-tables",
    "--skip-ssl",  # else each start makes an RSA key, which takes 10 s under emulation
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=8M",
    "--innodb-log-file-size=4M",
    "--innodb-doublewrite=ON",
    "--innodb-temp-data-file-path=ibtmp1:3M:autoextend",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
)
_OFTEN = "--innodb-max-dirty-pages-pct=10"
"""So that pages leave the server, and checkpoints happen, within seconds."""
_BOOTSTRAP_OPTIONS = (
    "--innodb-log-file-size=4M",
    "--innodb-buffer-pool-size=16M",
    "--innodb-flush-method=nosync",  # whoever asked syncs all
)
_SCHEMA = (
    f"CREATE DATABASE {_DATABASE}",
    f"USE {_DATABASE}",
    *(
        f"CREATE TABLE {table} (seq BIGINT, row_ INT, rows_ INT, writer INT, digest CHAR(32),"
        " payload LONGBLOB, PRIMARY KEY (seq, row_), INDEX by_digest (digest)) ENGINE=InnoDB"
        for table in TABLES
    ),
    f"CREATE TABLE {TOTALS} (writer INT PRIMARY KEY, transactions BIGINT) ENGINE=InnoDB",
)


class _Performer(Performer):
    def __init__(self, application: Mariadb, writer: int) -> None:
        super().__init__()
        self._application = application
        self._writer = writer
        self._connection: Any = None

    def perform(self, transaction: Transaction, seq: int) -> None:
        try:
            if self._connection is None:
                self._connection = self._application.connect(_DATABASE)
            self._commit(transaction, seq)
        except pymysql.Error as error:
            self.step = f"{error!r}; the server: {self._application.server.last_words()}"
            raise ApplicationError(self.step) from error

    def _commit(self, transaction: Transaction, seq: int) -> None:
        application = self._application
        sizes = transaction.what["sizes"]
        cursor = self._connection.cursor()
        for table, rows in rows_by_table(application.job["trial"], seq, sizes).items():
            values = [
                f"({seq}, {row}, {len(sizes)}, {self._writer}, md5('{seq} {row}'), x'{payload.hex()}')"
                for row, payload in rows
            ]
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")
        cursor.execute(
            f"UPDATE {TOTALS} SET transactions = transactions + 1 WHERE writer = {self._writer}"
        )
        begun_ns = time.monotonic_ns()
        if transaction.is_durable and application.job["commits"] == "lazy":
            with application.settling:  # the setting is the server's, not the connection's
                cursor.execute(f"SET GLOBAL {application.lax[0]} = 1")
                self._connection.commit()
                cursor.execute(f"SET GLOBAL {application.lax[0]} = {application.lax[1]}")
        else:
            self._connection.commit()
        if transaction.is_durable:
            self.durable_call_took(begun_ns)


class Mariadb(Application):
    """Its data are a directory."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job)
        self.settling = threading.Lock()
        options = [f"--innodb-flush-log-at-trx-commit={job['flush']}"]
        if not ends_at_once(job):
            options.append(_OFTEN)
        self.lax = ("innodb_flush_log_at_trx_commit", job["flush"])
        """What makes its commits lazy, where it does, and would not if it were 1."""
        if job["binlog"] != "off":
            options += ["--log-bin=binlog", "--server-id=1", f"--sync-binlog={job['binlog']}"]
        if job["binlog"] == "0":
            self.lax = ("sync_binlog", job["binlog"])
        self.server = Server(
            argv=[
                "/usr/sbin/mariadbd",
                "--no-defaults",
                f"--datadir={self.directory}",
                *_OPTIONS,
                *options,
            ],
            folder=_FOLDER,
            user=_USER,
            ready="ready for connections",
        )

    def connect(self, database: str | None = None) -> Any:
        """A connection; raises `pymysql.Error`."""
        return pymysql.connect(unix_socket=_SOCKET, user=_USER, database=database)

    def prepare(self) -> None:
        """A new server's data, with its tables."""
        os.mkdir(self.directory)  # noqa: PTH102 - pathlib is slow to import
        command = ["/usr/bin/mariadb-install-db", "--no-defaults", f"--datadir={self.directory}"]
        command += [f"--user={_USER}", "--skip-test-db", "--auth-root-authentication-method=normal"]
        subprocess.run(
            [*command, *_BOOTSTRAP_OPTIONS],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            timeout=_INSTALL_DEADLINE_S,
        )
        self.begin()
        connection = self.connect()
        cursor = connection.cursor()
        for statement in _SCHEMA:
            cursor.execute(statement)
        for writer in range(self.job["writers"]):
            cursor.execute(f"INSERT INTO {TOTALS} VALUES ({writer}, 0)")
        connection.commit()
        connection.close()
        self.server.stop(signal.SIGTERM)

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
        """Stop the server: as it should be, or at once, so that its log is all there is."""
        self.server.stop(signal.SIGKILL if ends_at_once(self.job) else signal.SIGTERM)

    def read(self) -> dict[str, Any]:
        """All rows, and what `mariadb-check` says, after the server's own recovery."""
        try:
            self.server.start(deadline_s=RECOVERY_PATIENCE_S)
        except ServerRefusedError as refusal:
            self.server.stop(signal.SIGKILL)
            return found(whole=[], refused=f"mariadbd: {refusal}", log=self.server.log())
        rows = Rows(self.job["trial"])
        for table in (*TABLES, TOTALS):  # of one that cannot be read, the others are known
            try:
                self._read(table, rows)
            except pymysql.Error as error:
                rows.complaints.append(repr(error))
        checked = ["/usr/bin/mariadb-check", "--no-defaults", f"--socket={_SOCKET}", "--skip-ssl"]
        rows.complaints += complaints_of(
            [*checked, "--extended", "--databases", _DATABASE], fine="OK", user=_USER
        )
        if not self.server.stop(signal.SIGTERM):
            rows.complaints.append("the server does not stop")
        whole, parts = rows.sorted_out()
        log = self.server.log()
        return found(whole=whole, parts=parts, complaints=rows.complaints, log=log)

    def _read(self, table: str, rows: Rows) -> None:
        connection = self.connect(_DATABASE)
        cursor = connection.cursor()
        if table == TOTALS:
            cursor.execute(f"SELECT writer, transactions FROM {TOTALS}")
            rows.compare(cursor.fetchall())
        else:
            cursor.execute(
                "SELECT seq, row_, rows_, writer, length(payload), md5(payload)"
                f" FROM {table} FORCE INDEX (PRIMARY)"
            )
            rows.add(table, cursor.fetchall())
        connection.close()


APPLICATION = Mariadb

"""MariaDB: one server, a connection for each writer, transactions of rows in InnoDB's tables.

The job's `flush` is `innodb_flush_log_at_trx_commit`, and `binlog` is `sync_binlog`, or "off"
without a binary log. With `commits` "lazy" some transactions are committed with 1 in the setting
that makes the others lazy. These are durable with all before them, as there is one log. Memory and
log are small. `innodb_doublewrite` is on, as are checksums.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from .database import Database
from .rows import TABLES, TOTALS, rows_by_table
from .server import Server, complaints_of, ends_at_once

_DEBIANS_MODULES = "/usr/lib/python3/dist-packages"
if _DEBIANS_MODULES not in sys.path:  # the load runs without them, for a faster start
    sys.path.append(_DEBIANS_MODULES)
import pymysql  # noqa: E402

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from . import Transaction
    from .database import DatabasePerformer
    from .rows import Rows

_USER = "root"
_FOLDER = "/run/torture-mariadb"
_SOCKET = f"{_FOLDER}/socket"
_DATABASE = "torture"
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
    "--innodb-flush-method=nosync",  # the caller syncs all
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


class Mariadb(Database):
    """Its data are a directory."""

    program = "mariadbd"
    error = pymysql.Error
    schema = _SCHEMA
    settled = signal.SIGTERM
    at_once = signal.SIGKILL

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job)
        self._settling = threading.Lock()
        options = [f"--innodb-flush-log-at-trx-commit={job['flush']}"]
        if not ends_at_once(job):
            options.append(_OFTEN)
        self._lax = ("innodb_flush_log_at_trx_commit", job["flush"])
        """The setting that makes its commits lazy unless it is 1; empty where none does."""
        if job["binlog"] != "off":
            options += ["--log-bin=binlog", "--server-id=1", f"--sync-binlog={job['binlog']}"]
        if job["binlog"] == "0":
            self._lax = ("sync_binlog", job["binlog"])
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

    def install(self) -> None:
        """The server's own tables."""
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

    def connect(self, *, is_new: bool = False) -> Any:
        """A connection to the schema's database."""
        database = None if is_new else _DATABASE
        return pymysql.connect(unix_socket=_SOCKET, user=_USER, database=database)

    def commit(
        self, connection: Any, transaction: Transaction, performer: DatabasePerformer
    ) -> None:
        """One `INSERT` for each table."""
        sizes, seq, writer = transaction.what["sizes"], performer.seq, performer.writer
        cursor = connection.cursor()
        for table, rows in rows_by_table(self.job["trial"], seq, sizes).items():
            values = [
                f"({seq}, {row}, {len(sizes)}, {writer}, md5('{seq} {row}'), x'{payload.hex()}')"
                for row, payload in rows
            ]
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")
        cursor.execute(
            f"UPDATE {TOTALS} SET transactions = transactions + 1 WHERE writer = {writer}"
        )
        begun_ns = time.monotonic_ns()
        if transaction.is_durable and self.job["commits"] == "lazy":
            with self._settling:  # the setting is the server's, not the connection's
                cursor.execute(f"SET GLOBAL {self._lax[0]} = 1")
                connection.commit()
                cursor.execute(f"SET GLOBAL {self._lax[0]} = {self._lax[1]}")
        else:
            connection.commit()
        if transaction.is_durable:
            performer.durable_call_took(begun_ns)

    def read_table(self, cursor: Any, table: str, rows: Rows) -> None:
        """By the primary key, which is the table."""
        cursor.execute(
            "SELECT seq, row_, rows_, writer, length(payload), md5(payload)"
            f" FROM {table} FORCE INDEX (PRIMARY)"
        )
        rows.add(table, cursor.fetchall())

    def check(self) -> list[str]:
        """The output of `mariadb-check`."""
        checked = ["/usr/bin/mariadb-check", "--no-defaults", f"--socket={_SOCKET}", "--skip-ssl"]
        checked += ["--extended", "--databases", _DATABASE]
        return complaints_of(checked, fine="OK", user=_USER)


APPLICATION = Mariadb

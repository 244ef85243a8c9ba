"""Databases: SQLite, PostgreSQL and MariaDB, a load for each setting that gives a different promise.

SQLite, with each journal and each level of `synchronous` that gives a different promise.

https://sqlite.org/pragma.html#pragma_synchronous has the levels. Each writer has a database of its
own, and all databases are in one directory.

PostgreSQL with its defaults, and with commits that do not wait.

`fsync` and `full_page_writes` are on: PostgreSQL restores a torn page from its write-ahead log.

MariaDB: each way of syncing InnoDB's log and the binary log that gives a different promise.

`innodb_doublewrite` is on: MariaDB restores a torn page from that buffer. After a crash the commits
that are there are always a prefix of all commits. A commit while the lazy setting is 1 makes all
earlier ones durable.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, Setting, choices_of
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_SYNCHRONOUS = "https://sqlite.org/pragma.html#pragma_synchronous"

_LOG = "https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_log_at_trx_commit"
_GROUP_COMMIT = "https://mariadb.com/kb/en/binary-log-group-commit-and-innodb-flushing-performance/"

CHOICES: tuple[Choice[Workload], ...] = (
    *choices_of(
        "sqlite",
        Setting(
            name="sqlite_extra",
            words="SQLite, rollback journal, synchronous=EXTRA",
            guest_settings={"journal": "delete", "synchronous": "extra"},
            durable="The journal and its removal are synced: a commit is durable when it returns.",
            source=_SYNCHRONOUS,
        ),
        # The removal of the journal commits, and SQLite does not sync the removal. Only EXTRA does,
        # which "is like FULL" otherwise. In EXTRA "the directory containing a rollback journal is
        # synced after that journal is unlinked to commit a transaction in DELETE mode".
        #
        # The next commit of any writer syncs the directory, too, before it writes (9.5). It does so
        # "at the same time it syncs the journal file itself". So all commits have one order.
        Setting(
            name="sqlite_full",
            words="SQLite, rollback journal, synchronous=FULL",
            guest_settings={"journal": "delete", "synchronous": "full"},
            durable="Until the directory is synced, the journal can reappear and roll the commit back.",
            source="https://sqlite.org/atomiccommit.html",
        ),
        Setting(
            name="sqlite_normal",
            words="SQLite, rollback journal, synchronous=NORMAL",
            guest_settings={"journal": "delete", "synchronous": "normal"},
            durable='As FULL, synced less often, and "still at the most critical moments".',
            source=_SYNCHRONOUS,
        ),
        Setting(
            name="sqlitewal_full",
            words="SQLite, WAL, synchronous=FULL",
            guest_settings={"journal": "wal", "synchronous": "full"},
            durable="The write-ahead log is synced at each commit, which is durable when it returns.",
            source=_SYNCHRONOUS,
        ),
        # "A transaction committed in WAL mode with synchronous=NORMAL might roll back following a power
        # loss". Each writer has a log of its own. A writer's commit or checkpoint promises nothing about
        # another writer's data.
        Setting(
            name="sqlitewal_normal",
            words="SQLite, WAL, synchronous=NORMAL",
            guest_settings={"journal": "wal", "synchronous": "normal"},
            has_one_order=False,
            durable="A writer's commits are there up to one; a checkpoint makes earlier ones durable.",
            source=_SYNCHRONOUS,
        ),
    ),
    *choices_of(
        "postgres",
        Setting(
            name="postgres",
            words="PostgreSQL",
            guest_settings={"synchronous_commit": "on", "commits": "durable"},
            durable="A commit waits for its records in the log, and is durable when it returns.",
            source="https://www.postgresql.org/docs/17/runtime-config-wal.html",
        ),
        # "The most recent transactions may be lost if the database should crash": at most those of
        # three times `wal_writer_delay`. But "the database state will be just the same as if those
        # transactions had been aborted cleanly".
        Setting(
            name="postgres_async",
            words="PostgreSQL, synchronous_commit=off",
            guest_settings={"synchronous_commit": "off", "commits": "lazy"},
            durable="A transaction that sets it to `on` makes all earlier ones durable.",
            source="https://www.postgresql.org/docs/17/wal-async-commit.html",
        ),
        image=DATABASES_IMAGE,
    ),
    *choices_of(
        "mariadb",
        Setting(
            name="mariadb",
            words="MariaDB",
            guest_settings={"flush": "1", "binlog": "off", "commits": "durable"},
            durable='The log is flushed at each commit, "required for full ACID compliance".',
            source=_LOG,
        ),
        # InnoDB and the binary log commit together, in two phases. After a crash, InnoDB commits a
        # prepared transaction if the binary log has it, else InnoDB rolls it back.
        Setting(
            name="mariadb_binlog",
            words="MariaDB, binary log",
            guest_settings={"flush": "1", "binlog": "1", "commits": "durable"},
            durable="A commit is durable once the binary log is synced, which is before it returns.",
            source=_GROUP_COMMIT,
        ),
        Setting(
            name="mariadb_binlog0",
            words="MariaDB, sync_binlog=0",
            guest_settings={"flush": "1", "binlog": "0", "commits": "lazy"},
            durable='The default: commits "are not guaranteed durable inside InnoDB".',
            source=_GROUP_COMMIT,
        ),
        Setting(
            name="mariadb_flush0",
            words="MariaDB, innodb_flush_log_at_trx_commit=0",
            guest_settings={"flush": "0", "binlog": "off", "commits": "lazy"},
            durable="Written and synced once a second: a crash of the server alone may take that second.",
            source=_LOG,
        ),
        Setting(
            name="mariadb_flush2",
            words="MariaDB, innodb_flush_log_at_trx_commit=2",
            guest_settings={"flush": "2", "binlog": "off", "commits": "lazy"},
            durable="Written at each commit, synced once a second: a crash of the system may take that.",
            source=_LOG,
        ),
        image=DATABASES_IMAGE,
    ),
)

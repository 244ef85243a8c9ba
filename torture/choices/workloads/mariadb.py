"""MariaDB: each way of syncing InnoDB's log and the binary log that gives a different promise.

`innodb_doublewrite` is on: MariaDB restores a torn page from that buffer. After a crash the commits
that are there are always a prefix of all commits. A commit while the lazy setting is 1 makes all
earlier ones durable.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, Setting, choices_of
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_LOG = "https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_log_at_trx_commit"
_GROUP_COMMIT = "https://mariadb.com/kb/en/binary-log-group-commit-and-innodb-flushing-performance/"

CHOICES: tuple[Choice[Workload], ...] = choices_of(
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
)

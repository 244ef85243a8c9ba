"""MariaDB with a binary log that is synced: innodb_flush_log_at_trx_commit=1 and sync_binlog=1.

InnoDB and the binary log commit together, in two phases: what InnoDB had prepared when it crashed is
committed if the binary log has it, else rolled back. So a commit is durable once the binary log is synced
(https://mariadb.com/kb/en/binary-log-group-commit-and-innodb-flushing-performance/).
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="mariadb_binlog",
    value=ApplicationWorkload(
        name="mariadb_binlog",
        application="mariadb",
        settings={"flush": "1", "binlog": "1", "commits": "durable"},
        image=DATABASES_IMAGE,
    ),
    words="MariaDB, binary log",
)

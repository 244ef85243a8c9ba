"""MariaDB with a binary log that nobody syncs, which is the default: sync_binlog=0.

https://mariadb.com/kb/en/binary-log-group-commit-and-innodb-flushing-performance/: then commits "are not
guaranteed durable inside InnoDB", although innodb_flush_log_at_trx_commit is 1. A commit that is made
while `sync_binlog` is 1 settles all before it.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="mariadb_binlog0",
    value=ApplicationWorkload(
        name="mariadb_binlog0",
        application="mariadb",
        settings={"flush": "1", "binlog": "0", "commits": "lazy"},
        image=DATABASES_IMAGE,
    ),
    words="MariaDB, sync_binlog=0",
)

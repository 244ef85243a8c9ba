"""MariaDB with innodb_flush_log_at_trx_commit=2: written at each commit, synced once a second.

https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_log_at_trx_commit: a crash of the system
may take the last second of transactions. What is there is still a prefix of them; a commit that is made
while the setting is 1 settles all before it.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="mariadb_flush2",
    value=ApplicationWorkload(
        name="mariadb_flush2",
        application="mariadb",
        settings={"flush": "2", "binlog": "off", "commits": "lazy"},
        image=DATABASES_IMAGE,
    ),
    words="MariaDB, innodb_flush_log_at_trx_commit=2",
)

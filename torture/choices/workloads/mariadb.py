"""MariaDB as it comes: innodb_flush_log_at_trx_commit=1, innodb_doublewrite on, no binary log.

https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_log_at_trx_commit: with 1 the log is
written and flushed to disk after each transaction, "required for full ACID compliance". A page that was
torn is restored from the doublewrite buffer (`innodb_doublewrite`, on the same page).
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="mariadb",
    value=ApplicationWorkload(
        name="mariadb",
        application="mariadb",
        settings={"flush": "1", "binlog": "off", "commits": "durable"},
        image=DATABASES_IMAGE,
    ),
    words="MariaDB",
)

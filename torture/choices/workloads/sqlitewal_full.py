"""SQLite with a write-ahead log, synced at each commit: a commit is durable when it returns.

https://sqlite.org/pragma.html#pragma_synchronous: "WAL mode with synchronous=FULL does the fsync" after
each transaction commit.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="sqlitewal_full",
    value=ApplicationWorkload(
        name="sqlitewal_full",
        application="sqlite",
        settings={"journal": "wal", "synchronous": "full"},
    ),
    words="SQLite, WAL, synchronous=FULL",
)

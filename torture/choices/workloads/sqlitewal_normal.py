"""SQLite with a write-ahead log that is synced at its checkpoints only.

https://sqlite.org/pragma.html#pragma_synchronous: "transactions are durable across application crashes
... A transaction committed in WAL mode with synchronous=NORMAL might roll back following a power loss".
What is promised is that all up to some commit is there; each checkpoint settles what came before. Each
writer has a database, and so a log, of its own: one's commit or checkpoint promises nothing of another's.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="sqlitewal_normal",
    value=ApplicationWorkload(
        name="sqlitewal_normal",
        application="sqlite",
        settings={"journal": "wal", "synchronous": "normal"},
        has_one_order=False,
    ),
    words="SQLite, WAL, synchronous=NORMAL",
)

"""SQLite with a rollback journal and its removal synced: a commit is durable when it returns.

https://sqlite.org/pragma.html#pragma_synchronous, EXTRA.
"""

from __future__ import annotations

from torture.axes.axis import Choice
from torture.workloads._application import ApplicationWorkload
from torture.workloads.protocol import Workload

CHOICE: Choice[Workload] = Choice(
    name="sqlite_extra",
    value=ApplicationWorkload(
        name="sqlite_extra",
        application="sqlite",
        settings={"journal": "delete", "synchronous": "extra"},
    ),
    words="SQLite, rollback journal, synchronous=EXTRA",
)

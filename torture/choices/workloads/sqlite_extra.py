"""SQLite with a rollback journal and its removal synced: a commit is durable when it returns.

https://sqlite.org/pragma.html#pragma_synchronous, EXTRA.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="sqlite_extra",
    value=ApplicationWorkload(
        name="sqlite_extra",
        application="sqlite",
        settings={"journal": "delete", "synchronous": "extra"},
    ),
    words="SQLite, rollback journal, synchronous=EXTRA",
)

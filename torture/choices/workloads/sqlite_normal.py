"""SQLite with a rollback journal that is synced less often than with FULL.

https://sqlite.org/pragma.html#pragma_synchronous: it "will still sync at the most critical moments".
As with FULL a commit may be rolled back until the directory is synced, and all have one order.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="sqlite_normal",
    value=ApplicationWorkload(
        name="sqlite_normal",
        application="sqlite",
        settings={"journal": "delete", "synchronous": "normal"},
    ),
    words="SQLite, rollback journal, synchronous=NORMAL",
)

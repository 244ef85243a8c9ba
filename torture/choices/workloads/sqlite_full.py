"""SQLite with a rollback journal, whose removal commits.

That removal is not synced: https://sqlite.org/pragma.html#pragma_synchronous says that EXTRA "is like
FULL with the addition that the directory containing a rollback journal is synced after that journal is
unlinked to commit a transaction in DELETE mode". A commit may be rolled back by a journal that is there
again, until its directory is synced.

The next commit does that as well, of whichever writer: "opening and syncing the directory containing the
rollback journal at the same time it syncs the journal file itself", before it writes
(https://sqlite.org/atomiccommit.html, 9.5), and all databases are in one directory. So all commits have
one order, although each writer has a database of its own.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="sqlite_full",
    value=ApplicationWorkload(
        name="sqlite_full",
        application="sqlite",
        settings={"journal": "delete", "synchronous": "full"},
    ),
    words="SQLite, rollback journal, synchronous=FULL",
)

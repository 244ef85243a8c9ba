"""SQLite, with each journal and each level of `synchronous` that gives a different promise.

https://sqlite.org/pragma.html#pragma_synchronous has the levels. Each writer has a database of its
own, and all databases are in one directory.
"""

from __future__ import annotations

from torture.choices.workloads._application import Setting, choices_of
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_SYNCHRONOUS = "https://sqlite.org/pragma.html#pragma_synchronous"

CHOICES: tuple[Choice[Workload], ...] = choices_of(
    "sqlite",
    Setting(
        name="sqlite_extra",
        words="SQLite, rollback journal, synchronous=EXTRA",
        guest_settings={"journal": "delete", "synchronous": "extra"},
        durable="The journal and its removal are synced: a commit is durable when it returns.",
        source=_SYNCHRONOUS,
    ),
    # The removal of the journal commits, and SQLite does not sync the removal. Only EXTRA does,
    # which "is like FULL" otherwise. In EXTRA "the directory containing a rollback journal is
    # synced after that journal is unlinked to commit a transaction in DELETE mode".
    #
    # The next commit of any writer syncs the directory, too, before it writes (9.5). It does so
    # "at the same time it syncs the journal file itself". So all commits have one order.
    Setting(
        name="sqlite_full",
        words="SQLite, rollback journal, synchronous=FULL",
        guest_settings={"journal": "delete", "synchronous": "full"},
        durable="Until the directory is synced, the journal can reappear and roll the commit back.",
        source="https://sqlite.org/atomiccommit.html",
    ),
    Setting(
        name="sqlite_normal",
        words="SQLite, rollback journal, synchronous=NORMAL",
        guest_settings={"journal": "delete", "synchronous": "normal"},
        durable='As FULL: the journal is synced less often, and "still at the most critical moments".',
        source=_SYNCHRONOUS,
    ),
    Setting(
        name="sqlitewal_full",
        words="SQLite, WAL, synchronous=FULL",
        guest_settings={"journal": "wal", "synchronous": "full"},
        durable="The write-ahead log is synced at each commit, which is durable when it returns.",
        source=_SYNCHRONOUS,
    ),
    # "A transaction committed in WAL mode with synchronous=NORMAL might roll back following a power
    # loss". Each writer has a log of its own. A writer's commit or checkpoint promises nothing about
    # another writer's data.
    Setting(
        name="sqlitewal_normal",
        words="SQLite, WAL, synchronous=NORMAL",
        guest_settings={"journal": "wal", "synchronous": "normal"},
        has_one_order=False,
        durable="A writer's commits are there up to one; a checkpoint makes earlier ones durable.",
        source=_SYNCHRONOUS,
    ),
)

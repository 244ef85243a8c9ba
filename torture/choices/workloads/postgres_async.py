"""PostgreSQL with synchronous_commit=off.

https://www.postgresql.org/docs/17/wal-async-commit.html: "the most recent transactions may be lost if the
database should crash", at most those of three times `wal_writer_delay`; but "the database state will be
just the same as if those transactions had been aborted cleanly". A transaction that sets it to `on` for
itself settles all before it.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="postgres_async",
    value=ApplicationWorkload(
        name="postgres_async",
        application="postgres",
        settings={"synchronous_commit": "off", "commits": "lazy"},
        image=DATABASES_IMAGE,
    ),
    words="PostgreSQL, synchronous_commit=off",
)

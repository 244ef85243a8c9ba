"""PostgreSQL with its defaults, and with commits that do not wait.

`fsync` and `full_page_writes` are on: PostgreSQL restores a torn page from its write-ahead log.
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, Setting, choices_of
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICES: tuple[Choice[Workload], ...] = choices_of(
    "postgres",
    Setting(
        name="postgres",
        words="PostgreSQL",
        guest_settings={"synchronous_commit": "on", "commits": "durable"},
        durable="A commit waits for its records in the log, and is durable when it returns.",
        source="https://www.postgresql.org/docs/17/runtime-config-wal.html",
    ),
    # "The most recent transactions may be lost if the database should crash": at most those of
    # three times `wal_writer_delay`. But "the database state will be just the same as if those
    # transactions had been aborted cleanly".
    Setting(
        name="postgres_async",
        words="PostgreSQL, synchronous_commit=off",
        guest_settings={"synchronous_commit": "off", "commits": "lazy"},
        durable="A transaction that sets it to `on` makes all earlier ones durable.",
        source="https://www.postgresql.org/docs/17/wal-async-commit.html",
    ),
    image=DATABASES_IMAGE,
)

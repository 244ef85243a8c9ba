"""PostgreSQL as it comes: synchronous_commit, fsync and full_page_writes are on.

A commit is durable when it returns: the server waits until its records of the write-ahead log are on disk
(https://www.postgresql.org/docs/17/runtime-config-wal.html, `synchronous_commit` and `fsync`), and a page
that was torn is restored from that log (`full_page_writes`).
"""

from __future__ import annotations

from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="postgres",
    value=ApplicationWorkload(
        name="postgres",
        application="postgres",
        settings={"synchronous_commit": "on", "commits": "durable"},
        image=DATABASES_IMAGE,
    ),
    words="PostgreSQL",
)

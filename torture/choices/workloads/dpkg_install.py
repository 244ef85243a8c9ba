"""Packages, installed with dpkg: durable once dpkg reported them installed and names were synced.

dpkg(1), `--force-unsafe-io`: without it there are "file system syncs before file renames"; see
`vmimages/client/load/applications/dpkg.py`.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

CHOICE: Choice[Workload] = Choice(
    name="dpkg",
    value=ApplicationWorkload(name="dpkg", application="dpkg"),
    words="packages installed with dpkg",
)

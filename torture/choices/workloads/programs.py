"""Programs of Debian whose own syncs make their work durable.

A git commit is durable once it returned and names were synced. git-config(1), `core.fsync=all`: "an
aggregate option that syncs all individual components above", and fsync(2) on names.
`vmimages/client/load/applications/git.py` explains more, and also why git's own default is no load.

A package is durable once dpkg reported it installed and names were synced. dpkg(1),
`--force-unsafe-io`: without it there are "file system syncs before file renames"; see
`vmimages/client/load/applications/dpkg.py`.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

GIT_IMAGE = "client_git"
"""The client with Debian's git, which brings Perl."""

CHOICES: tuple[Choice[Workload], ...] = (
    Choice(
        name="git",
        value=ApplicationWorkload(name="git", application="git", image=GIT_IMAGE),
        words="git commits, core.fsync=all",
    ),
    Choice(
        name="dpkg",
        value=ApplicationWorkload(name="dpkg", application="dpkg"),
        words="packages installed with dpkg",
    ),
)

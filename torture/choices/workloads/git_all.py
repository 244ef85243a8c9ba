"""git with all of its files synced: a commit is durable once it returned and names were synced.

git-config(1), `core.fsync=all`: "an aggregate option that syncs all individual components above",
and fsync(2) on names. `vmimages/client/load/applications/git.py` explains more, and also why git's
own default is no load.
"""

from __future__ import annotations

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

GIT_IMAGE = "client_git"
"""The client with Debian's git, which brings Perl."""

CHOICE: Choice[Workload] = Choice(
    name="git",
    value=ApplicationWorkload(name="git", application="git", image=GIT_IMAGE),
    words="git commits, core.fsync=all",
)

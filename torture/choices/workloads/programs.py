"""Programs of Debian, and system calls by themselves, whose own syncs make their work durable.

A git commit is durable once it returned and names were synced. git-config(1), `core.fsync=all`: "an
aggregate option that syncs all individual components above", and fsync(2) on names.
`vmimages/client/load/applications/git.py` explains more, and also why git's own default is no load.

A package is durable once dpkg reported it installed and names were synced. dpkg(1),
`--force-unsafe-io`: without it there are "file system syncs before file renames"; see
`vmimages/client/load/applications/dpkg.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads._guest_load import read_of
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.trees.tree_oracle import consult_trees
from torture.oracles.verdict.trees.tree_syncs import parse_trees

GIT_IMAGE = "client_git"
"""The client with Debian's git, which brings Perl."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Posix(ApplicationWorkload):
    """Every operation of a filesystem beside writing files, each with the sync that makes it durable.

    The guest's half is `vmimages/client/load/applications/posix`.
    `torture/oracles/verdict/trees/tree_syncs.py` states the effect of each sync, with its source.
    Its transactions overwrite each other, so it needs an oracle of its own.
    """

    needs_inodes: bool = True

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """Any application's job, and whether names are stable: each operation announces it."""
        # `super()` does not know the new class that slots made
        job = ApplicationWorkload.job(self, seed=seed, place=place)
        return job | ({"names_are_stable": True} if place.names_are_stable else {})

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The oracle's answer; raises `UnreadableError` when ledger or read-back is no evidence."""
        document = self.readback_after_repair if after_repair else self.readback
        seen = read_of(evidence, terms, document, parse=parse_trees)
        return consult_trees(
            evidence.ledger, seen, cut_ms=evidence.cut_ms, tears_sectors=terms.tears_sectors
        )


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
    Choice(
        name="posix",
        value=Posix(name="posix", application="posix"),
        words="names, links, sizes, holes and attributes of files",
    ),
    Choice(
        name="chains",
        value=Posix(name="chains", application="posix", settings={"chains": "yes"}, writers=1),
        words="names that change hands between two commits of the filesystem",
    ),
)

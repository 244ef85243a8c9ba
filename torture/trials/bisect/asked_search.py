"""A search as a user asks for it: its versions, its trials and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.files import write_whole
from torture.trials.bisect.journal import Journal
from torture.trials.bisect.search import Found, Search
from torture.trials.bisect.searched_versions import CommitVersions, Versions, packaged_between
from torture.trials.bisect.suite_trier import SuiteTrier

VARIED = ("zfs", "linux", "linux-nas", "linux-client")
"""The options of the suite that take a version."""
_JOURNAL, _ANSWER = "bisect.jsonl", "found.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSearch:
    """A question, and the folder of its steps and its answer."""

    cell: str
    vary: str
    good: str
    bad: str
    folder: Path
    tree: Path | None = None
    """The repository of both ends; without one they are packaged versions."""
    only: tuple[str, ...] = ()
    """The parts of the tree that candidates touch; empty: any."""
    others: tuple[str, ...] = ()
    """Further options of the suite."""
    certainty: float = 0.95
    trials: int = 4
    seed: int = 1

    def answer(self, say: Callable[[str], None]) -> str:
        """Search, and return the answer in words; its file has the same as JSON.

        Raises `HarnessError` where the ends do not differ, or trials do not end.
        """
        journal = Journal(file=self.folder / _JOURNAL)
        journal.begin(
            {
                "cell": self.cell,
                "vary": self.vary,
                "good": self.good,
                "bad": self.bad,
                "only": self.only,
                "others": self.others,
                "trials": self.trials,
                "seed": self.seed,
            }
        )
        versions = self._versions()
        trier = SuiteTrier(
            versions=versions,
            cell=self.cell,
            option=f"--{self.vary}",
            trials=self.trials,
            seed=self.seed,
            folder=self.folder / "steps",
            others=self.others,
        )
        say(f"{len(versions.names)} versions; steps: {journal.file}")
        found = Search(versions, trier, journal, certainty=self.certainty, say=say).run()
        # in a search back in time, the version before the first that loses has the fix
        guilty = [number - versions.is_of_a_fix for number in found.versions]
        self._keep(versions, guilty, found)
        act = "the fix is" if versions.is_of_a_fix else "the first that loses is"
        one_of = "" if len(guilty) == 1 else " one of"
        named = "\n".join(f"  {versions.words(number)}" for number in guilty)
        if found.misfits:
            unlike = "\n".join(f"  {versions.words(number)}" for number in found.misfits)
            return (
                f"there is no first that loses: it was mended and came back, or shares differ. A change "
                f"is at{one_of}:\n{named}\nThese do not fit, by exact tests:\n{unlike}"
            )
        premise = (
            f"if from one version on each loses in the same share, and none before it does so: of "
            f"{found.versions[0]} earlier ones {found.tried_before} were tried"
        )
        return f"{act}{one_of}, with a probability of {found.certainty:.1%}, {premise}:\n{named}"

    def _versions(self) -> Versions:
        if self.tree is None:
            return packaged_between(self.vary, good=self.good, bad=self.bad)
        return CommitVersions.between(
            self.tree,
            good=self.good,
            bad=self.bad,
            clone=self.folder / "tree",
            paths=self.only,
        )

    def _keep(self, versions: Versions, guilty: list[int], found: Found) -> None:
        answer = {
            "versions": [versions.names[number] for number in guilty],
            "certainty": None if found.misfits else found.certainty,
            "misfits": [versions.names[number] for number in found.misfits],
            "is_fix": versions.is_of_a_fix,
        }
        write_whole(self.folder / _ANSWER, json.dumps(answer).encode())

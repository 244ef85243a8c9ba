"""A search as a user asks for it: its versions, its trials and its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.features.bisect.search import (
    CommitVersions,
    Found,
    Journal,
    Search,
    Step,
    Versions,
    packaged_between,
)
from torture.files import CHECKOUT, write_whole
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.run_document import LATEST, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records

_BUILD_DEADLINE_S = 4 * 3600
_TRIAL_DEADLINE_S = 1800
_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")
"""A search that is killed leaves neither a build nor trials (setpriv(1))."""
_MACHINES = {"--linux-nas": ("nas",), "--linux-client": ("client",)}
"""The images that have the version, where not both do. ZFS may not build for a client's kernel."""
_SEED_STEP = 1000
"""Batches of a version draw other trials: their seeds are so far apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteTrier:
    """Builds a version's images, and runs trials of one cell with them."""

    versions: Versions
    cell: str
    option: str
    """The option that takes the version, e.g. `--zfs`."""
    trials: int
    """Of a step."""
    seed: int
    folder: Path
    """Its subfolders have the runs and the logs of each step."""
    others: Sequence[str] = ()
    """Further options of the suite."""

    def try_version(self, number: int, *, batch: int) -> Step:
        """See `Trier`. Raises `HarnessError` when the trials do not end."""
        name, choice = self.versions.names[number], self.versions.choice(number)
        step_folder = self.folder / f"{name[:12]}-{batch}"
        step_folder.mkdir(parents=True, exist_ok=True)
        if why := self._why_not_built(choice, step_folder / "build.log"):
            return Step(version=name, skipped=why)
        records = self._play(choice, step_folder, seed=self.seed + _SEED_STEP * batch)
        conclusive = [record for record in records if record.is_conclusive]
        if not conclusive:
            return Step(version=name, skipped=f"no trial had a verdict: see {step_folder}")
        losses = sum(record.breaks(Guarantee(record.guarantee)) for record in conclusive)
        return Step(version=name, trials=len(conclusive), losses=losses)

    def _why_not_built(self, choice: str, log: Path) -> str:
        """The reason why a version has no images, in the builder's words; empty once it has them."""
        option = "--zfs" if self.option == "--zfs" else "--linux"
        images = _MACHINES.get(self.option, ())
        argv = (sys.executable, CHECKOUT / "tools" / "images", "build", *images, option, choice)
        if _run(argv, log, deadline_s=_BUILD_DEADLINE_S, errors=subprocess.STDOUT) == 0:
            return ""
        return f"it cannot be built, see {log}: {_end_of(log)}"

    def _play(self, choice: str, folder: Path, *, seed: int) -> tuple[TrialRecord, ...]:
        """The records of a step's run, which goes on where it was interrupted."""
        latest = folder / LATEST
        continued = ("--continue", str(latest.resolve())) if latest.exists() else ()
        argv = (
            sys.executable, "-m", "pytest", "suites/powercut", "-q", "--cell", self.cell,
            self.option, choice, "--trials", str(self.trials), "--seed", str(seed),
            "--keep", "bad", "--results", str(folder), *self.others, *continued,
        )  # fmt: skip
        log = folder / "session.log"
        _run(argv, log, deadline_s=self.trials * _TRIAL_DEADLINE_S)
        file_of_records = latest / TRIALS_FILE
        records = read_records(file_of_records).records if file_of_records.exists() else ()
        if len(records) < self.trials:
            raise HarnessError(
                f"{len(records)} of {self.trials} trials ended: {_end_of(log)}",
                hint=f"read {log}; the same command goes on from here",
            )
        return records


def _run(
    argv: Sequence[str | Path], log: Path, *, deadline_s: float, errors: int | None = None
) -> int:
    """The exit code of a program that adds its output to a log; raises `HarnessError` when it hangs.

    `errors`: as `stderr` of subprocess. By default the user sees it, with the suite's progress.
    """
    with log.open("ab") as file:
        try:
            done = subprocess.run(
                (*_WITH_US, *argv),
                cwd=CHECKOUT,
                stdout=file,
                stderr=errors,
                timeout=deadline_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise HarnessError(
                f"{argv[1:4]} did not end within {deadline_s:g} s",
                hint=f"read {log}; the same command goes on from here",
            ) from error
    return done.returncode


def _end_of(log: Path) -> str:
    """The last line of a log that says something."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


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
            self.tree, good=self.good, bad=self.bad, clone=self.folder / "tree", paths=self.only
        )

    def _keep(self, versions: Versions, guilty: list[int], found: Found) -> None:
        answer = {
            "versions": [versions.names[number] for number in guilty],
            "certainty": None if found.misfits else found.certainty,
            "misfits": [versions.names[number] for number in found.misfits],
            "is_fix": versions.is_of_a_fix,
        }
        write_whole(self.folder / _ANSWER, json.dumps(answer).encode())

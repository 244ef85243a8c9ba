"""Trials of a version by the suite itself, in a session of pytest whose progress the user sees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.run_layout import LATEST, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.trials.bisect.journal import Step
from torture.trials.bisect.searched_versions import Versions

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

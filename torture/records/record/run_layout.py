"""The place of everything in a run: the names are spelled here, and nowhere else.

    results/latest -> RUN
    results/RUN/run.json, trials.jsonl, report.html
    results/RUN/trials/TRIAL/...
    results/RUN/repro/TRIAL/...
    results/RUN/workers/wN.log

`torture.facts.evidence.folder` has the names of the files in a trial's folder. results/README.md
explains the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LATEST = "latest"
"""Beside the runs: a link to the newest."""

RUN_FILE = "run.json"
"""See `torture.records.record.run_document`."""
TRIALS_FILE = "trials.jsonl"
"""One record a line, see `torture.records.record.trials`."""
TRIALS_FILE_BEFORE = "trials.jsonl.before"
"""`TRIALS_FILE` before the run was judged again. Each further judgement adds `-2` and so on."""
PAGE_FILE = "report.html"
EVIDENCE_FOLDER = "trials"
"""One folder a trial."""
REPRODUCERS_FOLDER = "repro"
"""One folder for each of the first losses that break a guarantee."""
WORKERS_FOLDER = "workers"
"""One log a worker."""

_FOLDER_NAME = re.compile(r"[^/\0]{1,250}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLayout:
    """The places in one run's folder; none of them needs to exist."""

    folder: Path

    @classmethod
    def of_evidence(cls, evidence: Path) -> RunLayout:
        """The run of a trial's folder, even of one that does not exist."""
        return cls(folder=evidence.resolve().parents[1])

    @property
    def run_file(self) -> Path:
        """The machine, tools and options of the run."""
        return self.folder / RUN_FILE

    @property
    def trials_file(self) -> Path:
        """One record a line; absent as long as no trial has ended."""
        return self.folder / TRIALS_FILE

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / PAGE_FILE

    @property
    def evidence(self) -> Path:
        """One folder a trial."""
        return self.folder / EVIDENCE_FOLDER

    @property
    def reproducers(self) -> Path:
        """One run of a single trial for each loss that breaks a guarantee, to hand over."""
        return self.folder / REPRODUCERS_FOLDER

    def worker_log(self, number: int) -> Path:
        """A worker's output, over all of its trials."""
        return self.folder / WORKERS_FOLDER / f"w{number}.log"

    def with_relative_paths(self, text: str) -> str:
        """A text with paths relative to the folder: a run may be moved, or published."""
        return text.replace(f"{self.folder}/", "")

    def evidence_of(self, trial: str) -> Path:
        """The folder of a trial; raises `ValueError` for a name that leads elsewhere, or nowhere."""
        if trial in {".", ".."} or not _FOLDER_NAME.fullmatch(trial):
            raise ValueError(f"{trial[:80]!r} is no name of a folder")
        return self.evidence / trial

"""A campaign on the fleet as a process of its own, which goes on after it was ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from suites.chaos.host_disks import HostDisks
from suites.chaos.no_op_campaign import specs_of
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.records.record.run_document import LATEST, TRIALS_FILE
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.trials.plan.draw import draw_trials

_CTRL_C_WORKS = ("env", "--default-signal=INT")
"""A shell's background job ignores Ctrl-C, and so would the session."""


class Session(ABC):
    """The process, and the records of its run so far."""

    def __init__(self, disks: HostDisks, name: str, specs: Sequence[TrialSpec]) -> None:
        self._disks = disks
        self._results = disks.results / name
        self.log = disks.results.with_name(f"session-{name}.log")
        """The output of all its beginnings, on a disk that has room."""
        self.drawn = sorted(spec.trial for spec in specs)
        self.begun = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def _run(self) -> Path:
        """The run's folder, where the campaign sees it."""

    @abstractmethod
    def _words(self, address: str) -> tuple[str, ...]:
        """The command that begins the campaign, or goes on with it."""

    @property
    def is_running(self) -> bool:
        """Whether the session has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """The records of its run so far."""
        file = self._disks.seen(self._run) / TRIALS_FILE
        return read_records(file).records if file.exists() else ()

    @property
    def ended(self) -> set[str]:
        """The trials that have a record."""
        return {record.trial for record in self.records}

    @property
    def is_complete(self) -> bool:
        """Whether no trial is missing."""
        return self.ended == set(self.drawn)

    def in_words(self) -> str:
        """Its progress."""
        dead = sum(record.dead_tries for record in self.records)
        return f"{len(self.records)} of {len(self.drawn)} trials, {dead} dead tries"

    def begin(self, address: str) -> None:
        """Start, or go on with the run where there is one."""
        self.begun += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._disks.prefix, *_CTRL_C_WORKS, sys.executable, "-m", *self._words(address)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it at once; nothing where it has ended."""
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)


class RealSession(Session):
    """`pytest suites/powercut` with the quick matrix."""

    def __init__(
        self, disks: HostDisks, name: str, *, trials: int, seed: int, load_ms: int
    ) -> None:
        cells = cells_of(Matrix.QUICK)
        super().__init__(
            disks, name, draw_trials(cells, trials=trials, run_seed=seed, load_ms=load_ms)
        )
        self._options = ("--trials", str(trials), "--seed", str(seed))
        self._load_ms = load_ms

    @property
    def _run(self) -> Path:
        return self._results / LATEST

    def _words(self, address: str) -> tuple[str, ...]:
        latest = self._disks.seen(self._run)
        continued: tuple[str, ...] = ()
        if latest.is_symlink():  # its target has this name inside
            continued = ("--continue", str(self._results / latest.readlink().name))
        return (
            "pytest", "suites/powercut", "-q", "-p", "no:cacheprovider",
            "--matrix", str(Matrix.QUICK), *self._options,
            "--duration", str(self._load_ms / 1000), "--results", str(self._results),
            "--workers", f"dask:{address}", *continued,
        )  # fmt: skip


class NoOpSession(Session):
    """Many short trials without machines: most disturbances hit one between two of its steps."""

    def __init__(self, disks: HostDisks, name: str, *, trials: int, seed: int) -> None:
        super().__init__(disks, name, specs_of(trials=trials, seed=seed))
        self._arguments = (str(trials), str(seed))

    @property
    def _run(self) -> Path:
        return self._results

    def _words(self, address: str) -> tuple[str, ...]:
        return ("suites.chaos.no_op_campaign", str(self._results), address, *self._arguments)

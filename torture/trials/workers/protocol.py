"""A place for workers. `torture.trials.campaign` runs trials there and knows no more about it.

To add one, write a file beside this one with `WORKERS = WorkerSiteKind(...)`. Its workers run
`torture.trials.trial.one_trial.run_trial`: plain data in and out, and an evidence folder to bring back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.evidence.documents import Document
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord


class WorkerController(Protocol):
    """One worker, for the thread that runs it. Other threads may only call `kill`."""

    @property
    def is_running(self) -> bool:
        """Whether it can receive a trial."""

    def start(self) -> None:
        """Return when it is ready; raises `HarnessError` when it cannot work.

        The thread that calls this must outlive the worker: the thread's end may end the worker.
        """

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        """The record of one trial, whose evidence is then in the run's folder.

        Raises `DeadlineExceeded` when it takes too long and `HarnessError` when the worker dies. The
        worker and everything that it started are gone then.
        """

    def kill(self) -> None:
        """End the worker and everything that it started, at once; ignores a stopped worker."""


class WorkerSite(Protocol):
    """A place in which workers run."""

    @property
    def trial_deadline_s(self) -> float:
        """The maximum time of a trial there, by the way its machines boot there."""

    @property
    def waits_s(self) -> float:
        """How long a run without any slot waits for the next one to join."""

    @property
    def failure(self) -> HarnessError | None:
        """Why no worker works there any more; None as long as some may. No trial is to blame then."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for the run's reader, e.g. on a host that is out; their number only grows."""

    def slots(self, jobs: int) -> frozenset[int]:
        """The numbers of the workers that may run side by side now.

        `jobs` is the user's wish for this host. A number that is gone never comes back.
        """

    def controller(self, number: int, *, hear: Callable[[str], None]) -> WorkerController:
        """A worker that is not started yet; it replaces the last one of this number.

        `hear` receives the worker's stages and remarks.
        """

    def close(self) -> None:
        """Release the place, once no worker is left there."""


class WorkerOrders(Document, frozen=True, kw_only=True):
    """The places of workers and their settings."""

    scratch: Path
    """A directory of the workers; its owner empties it."""
    run: RunLayout
    """The places of each trial's evidence, and of each worker's output."""
    lab: LabSettings
    waits: bool = False
    """Whether trials wait for minutes, so that more of them than processors may be under way."""
    probes: bool = False
    """Whether a worker first shows that a machine starts, before it says that it is ready."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSiteKind:
    """The offer of a file of this folder, as `WORKERS`."""

    name: str
    words: str
    """The description for `--help`."""
    open: Callable[[WorkerOrders, str], WorkerSite]
    """The site at the place after the name; raises `HarnessError` when it is not available."""

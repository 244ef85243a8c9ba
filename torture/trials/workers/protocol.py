"""What a place for workers is. `torture.trials.campaign` has trials run there and knows no more of it.

To add one, write a file beside this one that says `WORKERS = WorkerSiteKind(...)`. What runs there
is `torture.trials.trial.live.run_trial`: plain data in and out, and an evidence folder to bring
home.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec

from torture.machines.lab.lab import LabSettings
from torture.records.record.run_layout import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord


class WorkerController(Protocol):
    """One worker, as the thread that has it work sees it. Only `kill` may be called by others."""

    @property
    def is_running(self) -> bool:
        """Whether it can be handed a trial."""

    def start(self) -> None:
        """Return when it is ready; raises `HarnessError` when it cannot work.

        The thread that calls this must outlive the worker: its end may be the worker's.
        """

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        """The record of one trial, whose evidence is then in the run's folder.

        Raises `DeadlineExceeded` when it takes too long and `HarnessError` when the worker dies; the
        worker and all it had started are gone then.
        """

    def kill(self) -> None:
        """End the worker and everything it started, at once; one that is not running stays so."""


class WorkerSite(Protocol):
    """A place in which workers run."""

    @property
    def trial_deadline_s(self) -> float:
        """How long a trial may take there, as its machines are booted there."""

    def controller(self, number: int, *, hear: Callable[[str], None]) -> WorkerController:
        """A worker that is not started yet, in the place of the last one of this number.

        `hear` is told what it is at: stages and remarks.
        """

    def close(self) -> None:
        """Let go of the place, once no worker is left there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOrders:
    """Where workers work and with what."""

    scratch: Path
    """A directory that is theirs; emptied by its owner."""
    run: RunLayout
    """Where each trial's evidence goes, and what a worker prints."""
    lab: LabSettings

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        plain: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The orders of `as_json`'s data."""
        return msgspec.convert(data, cls, dec_hook=lambda kind, text: kind(text))


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSiteKind:
    """What a file of this folder offers, as `WORKERS`."""

    name: str
    words: str
    """For `--help`."""
    open: Callable[[WorkerOrders, str], WorkerSite]
    """The site that the text after the name says; raises `HarnessError` when it cannot be had."""

"""An interrupted run that goes on: the same trials, without those that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import RunDocument, read_run_document
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.protocol import Schedule
from torture.trials.campaign.run import Run, describe

_MAY_DIFFER = frozenset({"jobs", "keep"})
"""Options that change neither a trial nor its verdict."""
_CONTENT = "content of image "
_STATE = "state of the suite"
_NOT_IN_OLDER_RUNS = (_CONTENT, _STATE)
"""Older runs do not have these, and go on without."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedRun:
    """The run that a command asks for, to compare with an interrupted one."""

    seed: int
    lab: LabSettings
    options: dict[str, Any]

    def among(self, folders: Sequence[Path]) -> Run | None:
        """The first of these runs that the command continues; None where each is another run."""
        return next(
            (Run(folder=folder) for folder in folders if not self.differences(folder)), None
        )

    def differences(self, folder: Path) -> tuple[str, ...]:
        """The reasons, in words, for which the command draws other trials than that run.

        Raises `HarnessError` where the folder holds no run.
        """
        document = read_run_document(folder)
        if document is None:
            raise HarnessError(f"{folder} is no run", hint="ls results")
        was, now = _compared(document), _compared(self._document())
        return tuple(
            f"{name}: {was.get(name)!r}, now {now.get(name)!r}"
            for name in sorted(was | now)
            if was.get(name) != now.get(name)
            and (name in was or not name.startswith(_NOT_IN_OLDER_RUNS))
        )

    def _document(self) -> RunDocument:
        return replace(describe(self.lab), seed=self.seed, options=self.options)


def _compared(document: RunDocument) -> dict[str, object]:
    """The facts that two parts of one run must share."""
    options = {name: value for name, value in document.options.items() if name not in _MAY_DIFFER}
    images = {
        f"image {name}": None if image is None else image.key
        for name, image in document.images.items()
    }
    contents = {
        f"{_CONTENT}{name}": image.sha256
        for name, image in document.images.items()
        if image is not None and image.sha256
    }
    state = {_STATE: document.engine_state} if document.engine_state else {}
    return options | images | contents | state | {
        "seed": document.seed,
        "extra": document.extra,
        "zfs": document.zfs,
        "boot": document.boot,
        "accelerator": document.accelerator.kind,
        "processor": document.processor,
        "network": document.network.kind,
    }  # fmt: skip


def settle(schedule: Schedule, records: Sequence[TrialRecord]) -> None:
    """Bring a new schedule to the state in which these records left another one.

    Its other trials are handed out again, in their order. Raises `HarnessError` for records of
    trials that the schedule does not have.
    """
    handed: dict[str, TrialSpec] = {}
    left = {record.trial: record for record in records}
    while True:
        # an ended trial may cause another, so trials are asked for again
        while (spec := schedule.next_spec()) is not None:
            handed[spec.trial] = spec
        ended = [trial for trial in left if trial in handed]
        if not ended:
            break
        for trial in ended:
            schedule.record_ended(handed.pop(trial), left.pop(trial))
    for spec in reversed(handed.values()):
        schedule.give_back(spec)
    if left:
        raise HarnessError(
            f"{len(left)} trials of that run are not drawn by this command, e.g. {next(iter(left))}",
            hint="use the same cells, -k and -m as that run",
        )

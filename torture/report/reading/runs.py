"""Finds the runs of a report: folders, files, and nested folders as a CI leaves them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from torture.errors import HarnessError
from torture.records.record.run_document import (
    RUN_FILE,
    TRIALS_FILE,
    RunDocument,
    RunLayout,
    read_run_document,
)
from torture.report.reading.text import shell_word

_DEPTH_MAX = 4
"""The depth of runs below the named folder, e.g. `artifacts/shard-3/results/RUN`."""
_FOLDERS_MAX = 20_000
"""The most folders that are searched, before an error asks for a smaller folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """A run as found in its folder."""

    name: str
    """The name in its `run.json`, otherwise its folder's."""
    folder: Path
    document: RunDocument = field(default_factory=RunDocument)
    is_documented: bool = False
    """Whether it has a readable `run.json`."""

    @property
    def may_have_stopped_early(self) -> bool:
        """Whether its cells may have stopped at the answer to their question.

        A run without a description does not say it. Of several runs the numbers of cuts count as planned.
        """
        return self.document.is_sequential or not self.is_documented

    @property
    def begun_s(self) -> float:
        """When it began, for sorting; the end of time if unknown, so that no such run is the first."""
        try:
            moment = datetime.fromisoformat(self.document.begun)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return math.inf

    @property
    def layout(self) -> RunLayout:
        """The layout of its files."""
        return RunLayout(folder=self.folder)


def find_run(path: Path) -> RunInfo:
    """The one run at `path`.

    Raises `HarnessError` for none, and for several.
    """
    found = find_runs(path)
    if len(found) > 1:
        raise HarnessError(
            f"{path} holds {len(found)} runs", hint=f"name one of them, e.g. {found[0].folder}"
        )
    return found[0]


def find_runs(path: Path) -> tuple[RunInfo, ...]:
    """The runs at `path`: a run's folder, its `trials.jsonl`, or a folder that holds runs.

    Sorted by folder. A link such as `results/latest` gives the run behind it; links below a folder of
    runs are not followed. Raises `HarnessError` when there is no trial.
    """
    try:
        real = path.resolve(strict=True)
        if real.is_file():
            return (_run_of_file(path, real),)
        if (real / TRIALS_FILE).is_file():
            return (read_run(real),)
        found = tuple(read_run(folder) for folder in _run_folders(real))
    except (OSError, RuntimeError) as error:
        raise HarnessError(f"no run at {path}: {error}", hint="ls results/") from error
    if not any(run.layout.trials_file.is_file() for run in found):
        raise HarnessError(
            f"there is no {TRIALS_FILE} in {path}",
            hint="name a run's folder, e.g. results/latest; tools/run makes one",
        )
    return found


def folder_of(named: Sequence[Path]) -> Path:
    """The folder of a page: that of the one run, or the one folder that holds its runs.

    Raises `HarnessError` for several: a run's own page shows that run alone.
    """
    folders = {run.folder for path in named for run in find_runs(path)}
    if len(folders) == 1:
        return folders.pop()
    if len(named) > 1:
        raise HarnessError(
            f"a page of {len(folders)} runs belongs in none of their folders",
            hint="name a folder: --output DIR",
        )
    return named[0]


def folder_in_words(run: RunInfo, trial: str) -> str:
    """The folder of a trial's evidence, present or removed, quoted for a shell."""
    folder = run.folder
    if folder.is_relative_to(here := Path.cwd()):
        folder = folder.relative_to(here)
    words = str(RunLayout(folder=folder).evidence / trial)
    # a tool would take it for an option
    return shell_word(f"./{words}" if words.startswith("-") else words)


def _run_of_file(named: Path, real: Path) -> RunInfo:
    if real.name != TRIALS_FILE:
        raise HarnessError(
            f"{named} is no {TRIALS_FILE}", hint="name a run's folder, e.g. results/latest"
        )
    return read_run(real.parent)


def _run_folders(folder: Path) -> Iterator[Path]:
    """Every folder below that is a run, with or without trials."""
    waiting = [(folder, 0)]
    looked_into = 0
    while waiting:
        here, depth = waiting.pop(0)
        looked_into += 1
        if looked_into > _FOLDERS_MAX:
            raise HarnessError(
                f"{folder} holds more than {_FOLDERS_MAX:,} folders",
                hint="name the runs themselves",
            )
        if (here / TRIALS_FILE).is_file() or (here / RUN_FILE).is_file():
            yield here
        elif depth < _DEPTH_MAX:
            below = sorted(
                entry for entry in here.iterdir() if entry.is_dir() and not entry.is_symlink()
            )
            waiting += [(entry, depth + 1) for entry in below]


def read_run(folder: Path) -> RunInfo:
    """The run in a folder, with or without trials."""
    document = read_run_document(folder)
    if document is None:
        return RunInfo(name=folder.name, folder=folder)
    return RunInfo(
        name=document.run or folder.name, folder=folder, document=document, is_documented=True
    )

"""Which runs a report is of: folders, files, and folders of folders as a CI leaves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torture.errors import HarnessError
from torture.records.record.run_document import RunDocument, read_run_document
from torture.records.record.run_layout import RUN_FILE, TRIALS_FILE, RunLayout

_DEPTH_MAX = 4
"""Of runs below the folder that was named, e.g. `artifacts/shard-3/results/RUN`."""
_FOLDERS_MAX = 20_000
"""That are looked into, before somebody is told to name a smaller folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """A run as its folder tells it."""

    name: str
    """As its `run.json` says it, else as its folder does."""
    folder: Path
    document: RunDocument = field(default_factory=RunDocument)
    is_documented: bool = False
    """Whether there is a `run.json` that can be read."""

    @property
    def layout(self) -> RunLayout:
        """Where its files are."""
        return RunLayout(folder=self.folder)


def find_run(path: Path) -> RunInfo:
    """The one run that `path` is.

    Raises `HarnessError` when there is none, or several.
    """
    found = find_runs(path)
    if len(found) > 1:
        raise HarnessError(
            f"{path} holds {len(found)} runs", hint=f"name one of them, e.g. {found[0].folder}"
        )
    return found[0]


def find_runs(path: Path) -> tuple[RunInfo, ...]:
    """The runs at `path`: a run's folder, its `trials.jsonl`, or a folder that holds runs.

    Sorted by folder. A link such as `results/latest` gives the run it points to; links below a
    folder of runs are not followed. Raises `HarnessError` when no trial can be found there.
    """
    try:
        real = path.resolve(strict=True)
        if real.is_file():
            return (_run_of_file(path, real),)
        if (real / TRIALS_FILE).is_file():
            return (_read_run(real),)
        found = tuple(_read_run(folder) for folder in _run_folders(real))
    except (OSError, RuntimeError) as error:
        raise HarnessError(f"no run at {path}: {error}", hint="ls results/") from error
    if not any(run.layout.trials_file.is_file() for run in found):
        raise HarnessError(
            f"there is no {TRIALS_FILE} in {path}",
            hint="name a run's folder, e.g. results/latest; tools/run makes one",
        )
    return found


def folder_of(named: Sequence[Path]) -> Path:
    """Where a page belongs: beside the one run, or in the one folder that holds its runs.

    Raises `HarnessError` where several were named: a run's own page is of that run alone.
    """
    folders = {run.folder for path in named for run in find_runs(path)}
    if len(folders) == 1:
        return folders.pop()
    if len(named) > 1:
        raise HarnessError(
            f"a page of {len(folders)} runs belongs beside none of them",
            hint="say where it lands: --output DIR",
        )
    return named[0]


def _run_of_file(named: Path, real: Path) -> RunInfo:
    if real.name != TRIALS_FILE:
        raise HarnessError(
            f"{named} is no {TRIALS_FILE}", hint="name a run's folder, e.g. results/latest"
        )
    return _read_run(real.parent)


def _run_folders(folder: Path) -> Iterator[Path]:
    """Every folder below that is a run; one without a trial yet is a run, too."""
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


def _read_run(folder: Path) -> RunInfo:
    document = read_run_document(folder)
    if document is None:
        return RunInfo(name=folder.name, folder=folder)
    return RunInfo(
        name=document.run or folder.name, folder=folder, document=document, is_documented=True
    )

"""Which runs a report is of: folders, files, and folders of folders as a CI leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.record.trials import TRIALS_FILE
from torture.report.reading.text import strict_json

RUN_FILE = "run.json"
_DEPTH_MAX = 4
"""Of runs below the folder that was named, e.g. `artifacts/shard-3/results/RUN`."""
_FOLDERS_MAX = 20_000
"""That are looked into, before somebody is told to name a smaller folder."""
_DOCUMENT_BYTES_MAX = 64 * 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """A run as its folder tells it; nothing of it is believed but what has the right type."""

    name: str
    folder: Path
    seed: int | None = None
    begun: str = ""
    """As `run.json` says it; empty when it does not."""
    options: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    """The whole `run.json`; empty where there is none, or none that can be read."""

    @property
    def trials_file(self) -> Path:
        """One record a line; absent as long as no trial has ended."""
        return self.folder / TRIALS_FILE

    @property
    def is_sequential(self) -> bool:
        """Whether its cells stopped when their question was answered: intervals must allow for it."""
        return bool(self.options.get("until"))


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
    if not any(run.trials_file.is_file() for run in found):
        raise HarnessError(
            f"there is no {TRIALS_FILE} in {path}",
            hint="name a run's folder, e.g. results/latest; tools/run makes one",
        )
    return found


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
            below = sorted(one for one in here.iterdir() if one.is_dir() and not one.is_symlink())
            waiting += [(one, depth + 1) for one in below]


def _read_run(folder: Path) -> RunInfo:
    document = _read_document(folder / RUN_FILE)
    name, seed, begun, options = (
        document.get(key) for key in ("run", "seed", "begun", "options")
    )  # fmt: skip
    return RunInfo(
        name=name if isinstance(name, str) and name else folder.name,
        folder=folder,
        seed=seed if type(seed) is int else None,
        begun=begun if isinstance(begun, str) else "",
        options=options if isinstance(options, dict) else {},
        document=document,
    )


def _read_document(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file() or file.stat().st_size > _DOCUMENT_BYTES_MAX:
            return {}
        data = strict_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}

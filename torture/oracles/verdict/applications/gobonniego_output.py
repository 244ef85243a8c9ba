"""What gobonniego prints: the figures of its runs, and why it ended.

`-json` prints one object when it ends, a run in each of its `results`; killed it prints nothing. What it
finds wrong is a panic of the Go runtime, exit code 2. All else is refused, not guessed at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from torture.oracles.verdict.unreadable import UnreadableError

_PANIC = re.compile(r"^panic: (?P<why>.*)$", re.MULTILINE)
_OF_THE_SYSTEM = re.compile(r"^\w+ /[^:]*: \S")
"""How Go words a system call that failed: `write /mnt/f: no space left on device` (`fs.PathError`)."""
_OF_THE_RUNTIME = re.compile(r"^(runtime error|\S+ signal)\b")
_KILLED = (128 + 9, 128 + 15)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run's figures, as gobonniego works them out (MB are 10^6 bytes)."""

    write_mb_per_s: float
    read_mb_per_s: float
    iops: float


class Ending(StrEnum):
    """How it ended."""

    DONE = "done"
    KILLED = "killed"
    STORAGE_FAILED = "storage-failed"
    """A system call on one of its files failed."""
    MISMATCHED = "mismatched"
    """It read something else than it had written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """How it ended, and in which words of its own."""

    ending: Ending
    words: str = ""


def parse_runs(stdout: str) -> tuple[Run, ...]:
    """All runs of all objects, one a line; raises `UnreadableError` if one is cut off or garbled."""
    return tuple(run for line in stdout.splitlines() if line.strip() for run in _runs_in(line))


def _runs_in(line: str) -> Iterable[Run]:
    try:
        raw = json.loads(line)
        if not isinstance(raw["version"], str):
            raise UnreadableError("gobonniego's output has no version")
        runs = [
            Run(
                write_mb_per_s=_figure(result, "write_megabytes_per_second"),
                read_mb_per_s=_figure(result, "read_megabytes_per_second"),
                iops=_figure(result, "iops"),
            )
            for result in raw["results"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"gobonniego's output is garbled: {error!r}") from error
    if not runs:
        raise UnreadableError("gobonniego's output has no run")
    return runs


def _figure(result: dict[str, Any], name: str) -> float:
    figure = result[name]
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        raise ValueError(f"{name} is no number")
    if not math.isfinite(figure) or figure < 0:
        raise ValueError(f"{name} is {figure}")
    return float(figure)


def parse_end(exit_code: int | None, stderr: str) -> End:
    """Why it ended; raises `UnreadableError` for what is not known."""
    if exit_code == 0:
        return End(ending=Ending.DONE)
    if exit_code is None or exit_code in _KILLED:
        return End(ending=Ending.KILLED)
    panic = _PANIC.search(stderr)
    words = "" if panic is None else panic["why"].strip()
    if not words or _OF_THE_RUNTIME.match(words):
        last = " ".join(stderr.split()[-12:])
        raise UnreadableError(f"gobonniego ended with {exit_code}, and why is not known: {last}")
    is_system = _OF_THE_SYSTEM.match(words) is not None
    return End(ending=Ending.STORAGE_FAILED if is_system else Ending.MISMATCHED, words=words)


def figures_of(runs: Iterable[Run]) -> dict[str, float]:
    """Means over all runs, by names of their own; empty without any run."""
    all_runs = list(runs)
    if not all_runs:
        return {}
    return {
        "gobonniego_runs": float(len(all_runs)),
        "gobonniego_write_mb_per_s": round(fmean(run.write_mb_per_s for run in all_runs), 3),
        "gobonniego_read_mb_per_s": round(fmean(run.read_mb_per_s for run in all_runs), 3),
        "gobonniego_iops": round(fmean(run.iops for run in all_runs), 1),
    }

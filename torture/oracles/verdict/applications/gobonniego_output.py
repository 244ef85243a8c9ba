"""The output of gobonniego: the figures of its runs, and the reason for its end.

`-json` prints one object at the end, with a run in each of its `results`. A killed gobonniego
prints nothing. If it finds wrong data, the Go runtime panics with exit code 2. All else is refused,
not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Annotated

from torture.facts.evidence.documents import Measure, Meta, strict_json, strictly
from torture.oracles.verdict.guarantee import UnreadableError

_PANIC = re.compile(r"^panic: (?P<why>.*)$", re.MULTILINE)
_OF_THE_SYSTEM = re.compile(r"^\w+ /[^:]*: \S")
"""Go's words for a failed system call: `write /mnt/f: no space left on device` (`fs.PathError`)."""
_OF_THE_RUNTIME = re.compile(r"^(runtime error|\S+ signal)\b")
_KILLED = (128 + 9, 128 + 15)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run's figures, as gobonniego computes and names them (MB are 10^6 bytes)."""

    write_megabytes_per_second: Measure
    read_megabytes_per_second: Measure
    iops: Measure


@dataclass(frozen=True, kw_only=True, slots=True)
class _Printed:
    version: str
    results: Annotated[tuple[Run, ...], Meta(min_length=1)]


class Ending(StrEnum):
    """The kinds of its end."""

    DONE = "done"
    KILLED = "killed"
    STORAGE_FAILED = "storage-failed"
    """A system call on one of its files failed."""
    MISMATCHED = "mismatched"
    """It read data that differ from its writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The kind of its end, and its own words for it."""

    ending: Ending
    words: str = ""


def parse_runs(stdout: str) -> tuple[Run, ...]:
    """All runs of all objects, one a line; raises `UnreadableError` for a cut-off or garbled one."""
    lines = (line.encode(errors="replace") for line in stdout.splitlines() if line.strip())
    try:
        return tuple(run for line in lines for run in strictly(_Printed, strict_json(line)).results)
    except ValueError as error:
        raise UnreadableError(f"gobonniego's output is garbled: {error!r}") from error


def parse_end(exit_code: int | None, stderr: str) -> End:
    """The reason for its end; raises `UnreadableError` for an unknown one."""
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
    write = fmean(run.write_megabytes_per_second for run in all_runs)
    read = fmean(run.read_megabytes_per_second for run in all_runs)
    return {
        "gobonniego_runs": float(len(all_runs)),
        "gobonniego_write_mb_per_s": round(write, 3),
        "gobonniego_read_mb_per_s": round(read, 3),
        "gobonniego_iops": round(fmean(run.iops for run in all_runs), 1),
    }

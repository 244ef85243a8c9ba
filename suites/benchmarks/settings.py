"""The amount of measurement, by environment variables, and the filesystems for it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

MEMORY = Path("/dev/shm")
DISK = Path("/var/tmp")
MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The adjustable amounts of the benchmarks."""

    rounds: int
    """`BENCH_ROUNDS`: pairs of runs; the ratio of each speed is their median."""
    recording_gib: int
    """`BENCH_RECORDING_GIB`: GiB written while memory is watched; 20 for the full benchmark."""
    view_writes: int
    """`BENCH_VIEW_WRITES`: writes in the recording that views are opened on."""
    fleet_trials: int
    """`BENCH_FLEET_TRIALS`: trials without machines over Dask while the campaign's memory is watched."""
    fleet_real_trials: int
    """`BENCH_FLEET_REAL_TRIALS`: trials of each cell of the quick matrix, by two workers and by one."""

    @classmethod
    def from_environment(cls) -> Self:
        """The settings of this run; raises `pytest.UsageError` for values that make no sense."""
        return cls(
            rounds=_number("BENCH_ROUNDS", 15),
            recording_gib=_number("BENCH_RECORDING_GIB", 1),
            view_writes=_number("BENCH_VIEW_WRITES", 1_000_000),
            fleet_trials=_number("BENCH_FLEET_TRIALS", 4_000),
            fleet_real_trials=_number("BENCH_FLEET_REAL_TRIALS", 4),
        )


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"{name}={text} is not a whole number from 1 on")
    return int(text)


def skip_without_room(place: Path, wanted_bytes: int) -> None:
    """Skip the test, with the reason, where there is not enough room; memory has to be free, too."""
    free = shutil.disk_usage(place).free if os.access(place, os.W_OK) else 0
    if place == MEMORY:
        free = min(free, _available_bytes())
    if free < wanted_bytes:
        pytest.skip(f"{free // MIB} MiB are free in {place}, {wanted_bytes // MIB} MiB are needed")


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0

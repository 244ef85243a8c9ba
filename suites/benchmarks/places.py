"""The filesystems for measurements, and whether each has room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
DISK = Path("/var/tmp")
MIB = 1 << 20
GIB = 1 << 30


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

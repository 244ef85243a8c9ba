"""The cost of recording: the shelf against nbdkit's own `file` plugin, the same client for both."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.servers import Done, Work, run_fio, serve_file, serve_shelf
from suites.benchmarks.settings import DISK, GIB, MEMORY, MIB, Settings, skip_without_room

_RATIO_MIN = 0.8
_RECORDING = "recording"
_WARM_UP_BYTES = 64 * MIB

# every block once: neither side writes the same place of the host twice
_WORKS = {
    "4 KiB random writes, depth 32": Work(
        pattern="randwrite", block_bytes=4096, depth=32, disk_bytes=GIB, total_bytes=GIB // 4
    ),
    "1 MiB sequential writes, depth 4": Work(
        pattern="write", block_bytes=MIB, depth=4, disk_bytes=GIB, total_bytes=GIB
    ),
}


@pytest.mark.parametrize("place", [MEMORY, DISK], ids=str)
@pytest.mark.parametrize("name", list(_WORKS))
def test_recording_costs_little(
    name: str,
    place: Path,
    figures: Figures,
    make_folder: Callable[[Path], Path],
    settings: Settings,
) -> None:
    work = _WORKS[name]
    skip_without_room(place, 2 * work.total_bytes)
    folder = make_folder(place)
    warm_up = replace(work, total_bytes=_WARM_UP_BYTES)
    _on_shelf(folder, warm_up)
    _on_file(folder, warm_up)
    pairs = []
    for number in range(settings.rounds):
        # a temporary disturbance of the host does not always hit the same side
        if number % 2:
            file, shelf = _on_file(folder, work), _on_shelf(folder, work)
        else:
            shelf, file = _on_shelf(folder, work), _on_file(folder, work)
        pairs.append((shelf, file))
    shelf_us, file_us = (
        median(side.server_us_per_write for side in sides) for sides in zip(*pairs, strict=True)
    )
    shelf_per_s, file_per_s = (
        median(side.writes_per_s for side in sides) for sides in zip(*pairs, strict=True)
    )
    figures.at_least(
        f"{name}, recorded in {place}, shelf / file plugin",
        [shelf.writes_per_s / file.writes_per_s for shelf, file in pairs],
        _RATIO_MIN,
        detail=f"{shelf_per_s:,.0f} / {file_per_s:,.0f} writes/s, server's processor time a write "
        f"{shelf_us:,.1f} / {file_us:,.1f} us",
    )


def _on_shelf(folder: Path, work: Work) -> Done:
    try:
        with serve_shelf(folder, disk_bytes=work.disk_bytes, recording=_RECORDING) as served:
            return run_fio(served, work, folder=folder)
    finally:
        shutil.rmtree(folder / _RECORDING, ignore_errors=True)


def _on_file(folder: Path, work: Work) -> Done:
    with serve_file(folder, disk_bytes=work.disk_bytes) as served:
        return run_fio(served, work, folder=folder)

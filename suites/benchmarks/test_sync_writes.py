"""The shelf's cost for a NAS: synchronous 4 KiB writes in the guest, against a raw file of QEMU."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.places import DISK, GIB, MEMORY, skip_without_room
from suites.selftest.machinery.sandbox import in_sandbox

_RATIO_MIN = 0.9
_DEADLINE_S = 900
_EVENTS_PER_WRITE = 4
"""The write and its flush, each submitted and completed."""


@pytest.fixture(scope="module")
def play(make_folder: Callable[[Path], Path]) -> Callable[[Path], Any]:
    """The measurement on a filesystem, played once for each."""

    @cache
    def played(place: Path) -> Any:
        skip_without_room(place, 3 * GIB)
        folder = make_folder(place)
        _skip_without_direct_io(folder)
        return in_sandbox(
            "suites.benchmarks.machines:synchronous_writes",
            scratch=folder / "nas",
            log=folder / "nas.log",
            deadline_s=_DEADLINE_S,
        )

    return played


@pytest.mark.parametrize(
    ("place", "on", "is_bound"),
    [
        (DISK, "disk", True),
        (DISK, "zvol", True),
        (MEMORY, "zvol", True),
        # there a flush of the raw file does nothing at all, unlike on any disk
        (MEMORY, "disk", False),
    ],
    ids=str,
)
def test_synchronous_writes_in_the_nas_are_as_quick_as_on_a_raw_file(
    place: Path, on: str, is_bound: bool, play: Callable[[Path], Any], figures: Figures
) -> None:
    played = play(place)[on]
    rounds, writes = played["rounds"], played["writes"]
    assert played["events"] >= writes * len(rounds) * _EVENTS_PER_WRITE, (
        "not every write was flushed"
    )
    shelf, raw = (median(pair[side] for pair in rounds) for side in ("shelf", "raw"))
    figures.at_least(
        f"synchronous 4 KiB writes in the NAS to a {on}, in {place}, shelf / raw file",
        [pair["shelf"] / pair["raw"] for pair in rounds],
        _RATIO_MIN if is_bound else None,
        detail=f"{shelf:,.0f} / {raw:,.0f} writes/s, {writes:,} a round",
    )


def _skip_without_direct_io(folder: Path) -> None:
    """Skip where QEMU could not open the raw file as it does in a trial, without the page cache."""
    try:
        os.close(os.open(folder / "probe", os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"{folder.parent} knows no O_DIRECT: {error}")

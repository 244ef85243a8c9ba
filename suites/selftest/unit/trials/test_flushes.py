"""A flush that did not reach the intent log's disks: lost by ZFS, or by the chain around it."""

from __future__ import annotations

import pytest

from torture.facts.recording.disks import ShelfDisk
from torture.trials.trial.promises.flushes import Detour

LEGS = (ShelfDisk(serial="slog0", size_mib=64), ShelfDisk(serial="slog1", size_mib=64))
BOTH = {"data0": 0, "slog0": 1, "slog1": 1}
NEITHER = {"data0": 2, "slog0": 0, "slog1": 0}
ONE = {"data0": 0, "slog0": 0, "slog1": 1}


@pytest.mark.parametrize(
    ("of_volume", "of_dataset", "of_disks", "is_by_zfs"),
    [
        (1, None, BOTH, True),
        (0, None, BOTH, False),
        (1, None, ONE, False),
        (1, None, NEITHER, False),
        (None, NEITHER, BOTH, True),
        (None, ONE, BOTH, False),
        (None, NEITHER, ONE, False),
        (None, NEITHER, NEITHER, False),
    ],
)
def test_zfs_lost_a_flush_that_it_got_and_that_the_disks_would_have_taken(
    of_volume: int | None,
    of_dataset: dict[str, int] | None,
    of_disks: dict[str, int],
    is_by_zfs: bool,
) -> None:
    detour = Detour(of_volume=of_volume, of_dataset=of_dataset, of_disks=of_disks)
    assert detour.is_lost_by_zfs(LEGS) is is_by_zfs

"""A flush that did not reach the intent log's disks: lost by ZFS, or by the chain around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torture.facts.recording.disks import ShelfDisk
from torture.trials.trial.promises.flushes import Detour

LEGS = (ShelfDisk(serial="slog0", size_mib=64), ShelfDisk(serial="slog1", size_mib=64))
BOTH = {"data0": 0, "slog0": 1, "slog1": 1}
NEITHER = {"data0": 2, "slog0": 0, "slog1": 0}
ONE = {"data0": 0, "slog0": 0, "slog1": 1}


@pytest.mark.parametrize(
    ("of_volume", "of_dataset", "of_disks", "lost_by"),
    [
        (1, None, BOTH, "zfs"),
        (0, None, BOTH, "chain"),
        (1, None, ONE, ""),
        (0, None, ONE, ""),
        (1, None, NEITHER, ""),
        (0, None, NEITHER, ""),
        (None, NEITHER, BOTH, "zfs"),
        (None, ONE, BOTH, "chain"),
        (None, NEITHER, ONE, ""),
        (None, ONE, ONE, ""),
        (None, NEITHER, NEITHER, ""),
    ],
)
def test_a_flush_was_lost_by_a_part_that_got_it_if_the_disks_would_have_taken_it(
    of_volume: int | None,
    of_dataset: dict[str, int] | None,
    of_disks: dict[str, int],
    lost_by: str,
) -> None:
    sent = Detour(of_client=1, of_volume=of_volume, of_dataset=of_dataset, of_disks=of_disks)
    assert sent.is_lost_by_zfs(LEGS) is (lost_by == "zfs")
    assert sent.is_lost_by_the_chain(LEGS) is (lost_by == "chain")
    assert not replace(sent, of_client=0).is_lost_by_the_chain(LEGS)

"""The volume's `sync` property (zfsprops(7))."""

from __future__ import annotations

from enum import StrEnum

from torture.axes.axis import Axis, Choice
from torture.axes.sweeps import EVERY_SWEEP, Sweep


class Sync(StrEnum):
    """When ZFS writes its intent log."""

    STANDARD = "standard"
    """When it is asked to: with a flush, FUA or O_SYNC."""
    ALWAYS = "always"
    """With every write."""
    DISABLED = "disabled"
    """Never."""


_UNLESS_ONLY_ALWAYS_TELLS = EVERY_SWEEP - {Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS}

AXIS = Axis(
    field="sync",
    noun="Sync",
    title="sync",
    place=20,
    is_the_question=True,
    varies_last=True,
    choices=tuple(
        Choice(
            name=sync.value,
            value=sync,
            words=f"sync={sync}",
            joins=EVERY_SWEEP if sync is Sync.ALWAYS else _UNLESS_ONLY_ALWAYS_TELLS,
        )
        for sync in Sync
    ),
)

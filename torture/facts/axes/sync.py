"""The volume's `sync` property (zfsprops(7))."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import ADMINISTRATION_SWEEPS, EVERY_SWEEP, Sweep


class Sync(StrEnum):
    """When ZFS writes its intent log."""

    STANDARD = "standard"
    """When it is asked to: with a flush, FUA or O_SYNC."""
    ALWAYS = "always"
    """With every write."""
    DISABLED = "disabled"
    """Never."""


_AS_IT_COMES = frozenset({Sweep.DATASTORES, Sweep.ROADS, Sweep.BOOT_FILESYSTEMS})
_BEHIND_ALWAYS = frozenset({Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS, Sweep.ROADS_BEHIND_ALWAYS})
_JOINS = {
    Sync.STANDARD: EVERY_SWEEP - _BEHIND_ALWAYS,
    Sync.ALWAYS: EVERY_SWEEP - _AS_IT_COMES - ADMINISTRATION_SWEEPS,
    Sync.DISABLED: EVERY_SWEEP - _BEHIND_ALWAYS - _AS_IT_COMES - ADMINISTRATION_SWEEPS,
}

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
            joins=_JOINS[sync],
        )
        for sync in Sync
    ),
)

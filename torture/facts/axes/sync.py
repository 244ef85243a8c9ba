"""The volume's `sync` property (zfsprops(7))."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, choices_of
from torture.facts.axes.sweeps import ADMINISTRATION_SWEEPS, EVERY_SWEEP, Sweep


class Sync(StrEnum):
    """When ZFS writes its intent log."""

    STANDARD = "standard"
    """When the client requests it: with a flush, FUA or O_SYNC."""
    ALWAYS = "always"
    """With every write."""
    DISABLED = "disabled"
    """Never."""


_STANDARD_ONLY = frozenset({Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.BOOT_FILESYSTEMS})
_ALWAYS_ONLY = frozenset({Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS, Sweep.TRANSPORTS_BEHIND_ALWAYS})
_JOINS = {
    Sync.STANDARD: EVERY_SWEEP - _ALWAYS_ONLY,
    Sync.ALWAYS: EVERY_SWEEP - _STANDARD_ONLY - ADMINISTRATION_SWEEPS,
    Sync.DISABLED: EVERY_SWEEP - _ALWAYS_ONLY - _STANDARD_ONLY - ADMINISTRATION_SWEEPS,
}

AXIS = Axis(
    field="sync",
    noun="Sync",
    title="sync",
    place=20,
    is_always_shown=True,
    varies_last=True,
    choices=choices_of({sync: (f"sync={sync}", "") for sync in Sync}, _JOINS),
)

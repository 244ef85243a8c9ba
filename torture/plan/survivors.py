"""What a cut leaves on each disk of the NAS: drawn from the trial's seed, as its persistence allows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torture.recording.crash_state import CrashState, DiskState, Policy
from torture.recording.disks import Persistence, ShelfDisk
from torture.recording.events import Recording
from torture.recording.model import tally

LYING_MS = 700
"""For how long before the cut a lying disk's flushes did nothing: completed writes were lost up to
700 ms after their completion in tests of SSDs under power faults (Ahmadian et al., arXiv 1805.00140)."""

_VOLATILE = (Policy.FLUSHED, Policy.SUBSET, Policy.TORN)
"""A volatile cache may lose all, or whole writes, or sectors of them."""


def draw_crash_state(
    recording: Path, *, cut: int, disks: Sequence[ShelfDisk], gone: frozenset[str], seed: int
) -> CrashState:
    """The view of this seed; disks that are `gone` are not in it."""
    return CrashState(
        recording=recording,
        cut=cut,
        seed=seed,
        disks={disk.serial: _drawn(disk, seed) for disk in disks if disk.serial not in gone},
    )


def _drawn(disk: ShelfDisk, seed: int) -> DiskState:
    match disk.persistence:
        case Persistence.PLP:
            return DiskState(policy=Policy.ALL)
        case Persistence.LYING:
            return DiskState(policy=Policy.LYING, lying_ms=LYING_MS)
        case Persistence.VOLATILE:
            generator = random.Random(f"survivors/{seed}/{disk.serial}")
            return DiskState(policy=generator.choice(_VOLATILE))


def everything(recording: Path, *, cut: int, disks: Sequence[ShelfDisk]) -> CrashState:
    """The view that loses nothing: the disks as they were at an event."""
    return CrashState(
        recording=recording,
        cut=cut,
        seed=0,
        disks={disk.serial: DiskState(policy=Policy.ALL) for disk in disks},
    )


def account(recording: Recording, view: CrashState, disks: Sequence[ShelfDisk]) -> dict[str, Any]:
    """For `cut.json`: by disk, what it is, its writes, and what became of those no flush covered."""
    return {disk.serial: _account_disk(recording, view, disk) for disk in disks}


def _account_disk(recording: Recording, view: CrashState, disk: ShelfDisk) -> dict[str, Any]:
    chosen = view.disks.get(disk.serial)
    number = recording.place_of(disk.serial)
    counts = tally(
        recording.events,
        disk=number,
        sector=disk.sector_bytes,
        view=chosen or DiskState(policy=Policy.FLUSHED),
        cut=view.cut,
        seed=view.seed,
    )
    policy = "gone" if chosen is None else chosen.policy
    return {"persistence": disk.persistence, "policy": policy} | asdict(counts)

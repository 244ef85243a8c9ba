"""What a cut leaves on each disk of the NAS: drawn from the trial's seed, as its persistence allows."""

from __future__ import annotations

import random
from collections.abc import Sequence

from torture.recording.crash_state import DiskState, InFlight, Policy
from torture.recording.disks import Persistence, ShelfDisk

LYING_MS = 700
"""For how long before the cut a lying disk's flushes did nothing: completed writes were lost up to
700 ms after their completion in tests of SSDs under power faults (Ahmadian et al., arXiv 1805.00140)."""

_POLICIES = {
    Persistence.PLP: (Policy.ALL,),
    Persistence.VOLATILE: (Policy.FLUSHED, Policy.SUBSET, Policy.TORN),
    Persistence.LYING: (Policy.LYING, Policy.SUBSET, Policy.TORN),
}
"""A volatile cache may lose all, or whole writes, or sectors of them; and so may one that lies, of all
that it has not done."""


def draw_disk_states(disks: Sequence[ShelfDisk], *, seed: int) -> dict[str, DiskState]:
    """What each of these disks keeps in the trial of this seed, by serial."""
    return {disk.serial: _drawn(disk, seed) for disk in disks}


def _drawn(disk: ShelfDisk, seed: int) -> DiskState:
    """What was in flight survives or not on any disk: nothing was promised of it."""
    generator = random.Random(f"survivors/{seed}/{disk.serial}")
    policy = generator.choice(_POLICIES[disk.persistence])
    in_flight = generator.choice(tuple(InFlight))
    return DiskState(
        policy=policy,
        lying_ms=LYING_MS if disk.persistence is Persistence.LYING else None,
        in_flight=InFlight.GONE if policy is Policy.TORN else in_flight,
    )

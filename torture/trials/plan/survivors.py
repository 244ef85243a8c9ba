"""The data that a cut leaves on each disk of the NAS.

The trial's seed draws them, as the disk's persistence allows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypedDict

from torture.facts.recording.crash_state import DiskState, InFlight, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk

LYING_MS = 700
"""The time before the cut in which a lying disk's flushes did nothing. In tests, SSDs under power
faults lost completed writes up to 700 ms after their completion (Ahmadian et al., arXiv
1805.00140)."""

_POLICIES_OF_DRAW_1 = {
    Persistence.PLP: (Policy.ALL,),
    Persistence.VOLATILE: (Policy.FLUSHED, Policy.SUBSET, Policy.TORN),
    Persistence.LYING: (Policy.LYING, Policy.SUBSET, Policy.TORN),
}
_OF_ANY_CACHE = (Policy.SUBSET, Policy.TORN, Policy.PREFIX, Policy.OLDEST, Policy.BUT_FEW)
_POLICIES = {
    Persistence.PLP: (Policy.ALL,),
    Persistence.VOLATILE: (Policy.FLUSHED, *_OF_ANY_CACHE),
    Persistence.LYING: (Policy.LYING, *_OF_ANY_CACHE),
}
"""A volatile cache may lose all, whole writes, sectors of them, the ends of them, the youngest, or
one or two. A lying cache may lose the same, of all writes that it has not done."""

_HELD_MS = (50, 10_000)
"""The maximum time for which a cache holds an unflushed write. The SSDs of the tests above held it
for 700 ms. A disk with an arm writes back when it has no other work."""
_HELD_BYTES = (1 << 20, 256 << 20)
"""The cache sizes in data sheets of disks without a capacitor."""


class _Bounds(TypedDict, total=False):
    held_ms: int
    held_bytes: int


def draw_disk_states(disks: Sequence[ShelfDisk], *, seed: int, draw: int) -> dict[str, DiskState]:
    """The state that each of these disks keeps in the trial of this seed, by serial.

    `draw`: as `TrialSpec` has it.
    """
    return {disk.serial: _drawn(disk, seed, draw) for disk in disks}


def _drawn(disk: ShelfDisk, seed: int, draw: int) -> DiskState:
    """A write in flight may survive or not on any disk: nothing is promised about it."""
    generator = random.Random(f"survivors/{seed}/{disk.serial}")
    is_old = draw == 1
    policies = _POLICIES_OF_DRAW_1 if is_old else _POLICIES
    policy = generator.choice(policies[disk.persistence])
    in_flight = generator.choice(tuple(InFlight))
    bounds: _Bounds = {} if is_old else _bounds(disk.persistence, generator)
    return DiskState(
        policy=policy,
        lying_ms=LYING_MS if disk.persistence is Persistence.LYING else None,
        in_flight=InFlight.GONE if policy in (Policy.TORN, Policy.PREFIX) else in_flight,
        **bounds,
    )


def _bounds(persistence: Persistence, generator: random.Random) -> _Bounds:
    """The most that a cache holds, each order of magnitude as often as the others.

    A disk holds data about which it lies for as long as it lies.
    """
    least_ms, most_ms = _HELD_MS
    least, most = _HELD_BYTES
    held_ms = round(least_ms * (most_ms / least_ms) ** generator.random())
    held_bytes = round(least * (most / least) ** generator.random())
    match persistence:
        case Persistence.PLP:
            return {}
        case Persistence.VOLATILE:
            return {"held_ms": held_ms, "held_bytes": held_bytes}
        case Persistence.LYING:
            return {"held_ms": max(held_ms, LYING_MS)}

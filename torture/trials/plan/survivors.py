"""What a cut leaves on each disk of the NAS: drawn from the trial's seed, as its persistence allows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypedDict

from torture.facts.recording.crash_state import DiskState, InFlight, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk

LYING_MS = 700
"""For how long before the cut a lying disk's flushes did nothing: completed writes were lost up to
700 ms after their completion in tests of SSDs under power faults (Ahmadian et al., arXiv 1805.00140)."""

_POLICIES_OF_DRAWS_1_AND_2 = {
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
"""A volatile cache may lose all, whole writes, sectors of them, the ends of them, the youngest, or one or
two; and so may one that lies, of all that it has not done."""

_HELD_MS = (50, 10_000)
"""For how long at most a cache holds an unflushed write: of SSDs tested as above 700 ms; a disk with an
arm writes back when it has nothing else to do."""
_HELD_BYTES = (1 << 20, 256 << 20)
"""The caches that data sheets of disks without a capacitor name."""


class _Bounds(TypedDict, total=False):
    held_ms: int
    held_bytes: int


def draw_disk_states(disks: Sequence[ShelfDisk], *, seed: int, draw: int) -> dict[str, DiskState]:
    """What each of these disks keeps in the trial of this seed, by serial.

    `draw`: as `TrialSpec` has it.
    """
    return {disk.serial: _drawn(disk, seed, draw) for disk in disks}


def _drawn(disk: ShelfDisk, seed: int, draw: int) -> DiskState:
    """What was in flight survives or not on any disk: nothing was promised of it."""
    generator = random.Random(f"survivors/{seed}/{disk.serial}")
    is_old = draw < 3
    policies = _POLICIES_OF_DRAWS_1_AND_2 if is_old else _POLICIES
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
    """What a cache holds at most, each order of magnitude as often as the others.

    What a disk lies about it holds for as long as it lies.
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

"""A leg of a mirror had not done its last 10 s of flushes, and had acknowledged them.

ZFS takes the newer leg's uberblock, reads that leg's blocks, and heals the other leg: nothing is
lost. But when a pool has to be healed after a cut, one of its disks broke its promise. ZFS commits
a group every 5 s. With a lie as short as that, 4 of 10 cuts found only stale blocks of the intent
log. ZFS takes these from the other leg.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.crash_state import DiskState, Policy

FAULT = Fault(
    name="leg-stale",
    layer=Layer.DISK,
    words="a leg of a mirror reads as it was 10 s ago",
    cell="iscsi-always-noslog-mirrored-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    bound_to=frozenset({"layout"}),
    survivors={
        "data0": DiskState(policy=Policy.ALL),
        "data1": DiskState(policy=Policy.LYING, lying_ms=10_000),
    },
)

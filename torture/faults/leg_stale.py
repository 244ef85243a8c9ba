"""A leg of a mirror that had done nothing of its last 5 s of flushes, and acknowledged them.

ZFS takes the newer leg's uberblock, reads what the other one holds, and heals it: nothing is lost. But a
pool that has to be healed after a cut had a disk that broke its word.
"""

from __future__ import annotations

from torture.faults.protocol import Fault, Layer, Sight
from torture.recording.crash_state import DiskState, Policy

FAULT = Fault(
    name="leg-stale",
    layer=Layer.DISK,
    words="a leg of a mirror reads as it was 5 s ago",
    cell="iscsi-always-noslog-mirrored-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    bound_to=frozenset({"layout"}),
    survivors={
        "data0": DiskState(policy=Policy.ALL),
        "data1": DiskState(policy=Policy.LYING, lying_ms=5000),
    },
)

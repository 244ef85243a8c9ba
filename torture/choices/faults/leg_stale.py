"""A leg of a mirror that had done nothing of its last 10 s of flushes, and acknowledged them.

ZFS takes the newer leg's uberblock, reads what the other one holds, and heals it: nothing is lost. But
a pool that has to be healed after a cut had a disk that broke its word. A group is committed every 5 s:
with a lie as short 4 of 10 cuts found only blocks of the log to be stale, which ZFS takes from the
other leg.
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

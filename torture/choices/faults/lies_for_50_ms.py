"""A disk had not done its last 50 ms of flushes, and had acknowledged them.

The last acknowledgement is a median of 92 ms old at cuts with another aim: 2 of 14 of these cuts
see this short lie. Its cuts aim at an acknowledgement, as a share of all cuts does. With
sync=always, most writes of an operation were flushed longer before, because guests are emulated: 2
of 10 cuts lost something.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.crash_state import DiskState, Policy

FAULT = Fault(
    name="lies-for-50-ms",
    layer=Layer.DISK,
    words="a disk lies about its last 50 ms",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.DATA,
    cuts=1,
    bound_to=frozenset({"layout"}),
    aim="acknowledged",
    survivors={"data0": DiskState(policy=Policy.LYING, lying_ms=50)},
)

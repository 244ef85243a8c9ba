"""sync=always that has silently become standard.

The audit does not see it: the client's own flushes are obeyed, so every acknowledgement is
covered; what a client that lives loses is what it had been told is written, and not flushed.
"""

from __future__ import annotations

from torture.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="sync-weakened",
    layer=Layer.ZFS,
    words="sync=always is silently standard",
    cell="iscsi-always-noslog-ext4-nasonly",
    seen_by=Sight.AUDIT,
    cuts=1,
    in_nas="zfs set sync=standard tank/vm",
)

"""sync=always that has silently become standard.

The client's own flushes are obeyed, so every acknowledgement of an operation is covered: it is what the
client's disk completed before them that is not. A client that lives loses it. Behind `nfs_image_dsync`
each write is flushed anyhow, and only a COMMIT that the cut meets is lost (1 of 5 cuts).
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="sync-weakened",
    layer=Layer.ZFS,
    words="sync=always is silently standard",
    cell="iscsi-always-noslog-ext4-nasonly",
    seen_by=Sight.AUDIT,
    cuts=1,
    amounts_to={"sync": "standard"},
    in_nas="zfs set sync=standard tank/vm",
)

"""sync=always has silently become standard.

ZFS obeys the client's own flushes, so every acknowledged operation is covered. The writes that the
client's disk completed before those flushes are not covered. A client that lives loses them. Behind
`nfs_image_dsync` each write is flushed anyhow: only a COMMIT that the cut meets is lost (1 of 5
cuts).
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

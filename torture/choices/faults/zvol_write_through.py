"""A zvol reports to the block layer that it has no cache, so no flush reaches ZFS."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zvol-write-through",
    layer=Layer.NAS,
    words="the zvol's queue is write through",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    bound_to=frozenset({"transport"}),
    in_nas=(
        "zvol=$(basename $(readlink -f /dev/zvol/tank/vm)) && "
        "echo write through > /sys/block/$zvol/queue/write_cache"
    ),
)

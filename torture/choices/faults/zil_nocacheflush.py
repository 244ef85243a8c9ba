"""ZFS does not flush its writes to its intent log (zfs(4))."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zil-nocacheflush",
    layer=Layer.ZFS,
    words="zil_nocacheflush=1",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    amounts_to={"zil_nocacheflush": "zilnocacheflush"},
    in_nas="echo 1 > /sys/module/zfs/parameters/zil_nocacheflush",
)

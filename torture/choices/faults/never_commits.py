"""A pool commits no transaction group of its own accord.

The thread that commits waits out its old timeout first, unless another commit is forced. The audit
reports a commit as late after 8 s (`torture.oracles.audit.commits.LATE_MS`); a usual load is
shorter.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="never-commits",
    layer=Layer.ZFS,
    words="no transaction group is committed",
    cell="iscsi-disabled-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=2,
    load_ms=20_000,
    in_nas="echo 3600 > /sys/module/zfs/parameters/zfs_txg_timeout && zpool sync tank",
)

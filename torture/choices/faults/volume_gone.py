"""The pool is imported, and its volume is gone."""

from __future__ import annotations

from torture.choices.faults._zpool import zpool_that
from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="volume-gone",
    layer=Layer.NAS,
    words="the volume is gone after import",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    before_import=zpool_that('/zpool.real "$@" && case $1 in import) zfs destroy tank/vm;; esac'),
)

"""The kernel of the NAS panics after its reboot, when it imports the pool."""

from __future__ import annotations

from torture.choices.faults._zpool import zpool_that
from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="nas-panics",
    layer=Layer.NAS,
    words="the NAS panics at import",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    before_import=zpool_that("echo c > /proc/sysrq-trigger; sleep 600"),
)

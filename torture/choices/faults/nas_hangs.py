"""The import of the pool does not end in the NAS after its reboot.

The trial gives up after 20 s here, so that the fault costs no more time than others.
"""

from __future__ import annotations

from torture.choices.faults._zpool import zpool_that
from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="nas-hangs",
    layer=Layer.NAS,
    words="the NAS hangs at import",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    before_import=zpool_that("sleep 600"),
    import_patience_s=20,
)

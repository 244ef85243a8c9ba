"""ZFS that does not claim the blocks of its intent log at import (`zil_claim_log_block`, zil.c).

ZFS may overwrite them before it replays them. Once replayed, they are freed although they were
never allocated, which is a panic. A cut with nothing in the intent log shows nothing.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-log-not-claimed",
    layer=Layer.ZFS,
    words="the blocks of the intent log are not claimed",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=2,
    zfs="2.3.9+log_not_claimed",
)

"""The emulator of the NAS stands still for 12 s under the load: initiators wait longer than that."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer

FAULT = Fault(
    name="nas-stood-still",
    layer=Layer.NAS,
    words="the NAS stood still for 12 s before the cut",
    cell="iscsi-always-noslog-btrfs-nasonly",
    seen_by=None,
    cuts=0,
    nas_stands_still_ms=12_000,
)

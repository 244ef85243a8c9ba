"""A NAS is away for a minute: the client waits, and no timeout may become a loss."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer

FAULT = Fault(
    name="nas-back-late",
    layer=Layer.NAS,
    words="the NAS is back after 60 s",
    cell="iscsi-always-noslog-btrfs-nasonly",
    seen_by=None,
    cuts=0,
    before_import="sleep 60",
)

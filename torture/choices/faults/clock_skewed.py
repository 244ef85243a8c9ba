"""The clocks of NAS and client are two days apart."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer

FAULT = Fault(
    name="clock-skewed",
    layer=Layer.NAS,
    words="the clocks are two days apart",
    cell="iscsi-always-noslog-btrfs-nasonly",
    seen_by=None,
    cuts=0,
    in_nas="date --utc --set '+1 day'",
    in_client="date --utc --set '-1 day'",
)

"""Programs that only consume processor time run in NAS and client."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer

_BUSY = "for i in 1 2; do setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 & done"

FAULT = Fault(
    name="cores-loaded",
    layer=Layer.NAS,
    words="NAS and client are busy with something else",
    cell="iscsi-always-noslog-btrfs-nasonly",
    seen_by=None,
    cuts=0,
    in_nas=_BUSY,
    in_client=_BUSY,
)

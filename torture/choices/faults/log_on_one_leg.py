"""The legs of a mirrored SLOG differ: one is complete, the other lacks its last 700 ms.

Acknowledged blocks of the intent log are on one leg only, as when the other leg lied. ZFS reads all
copies of a block of the log before it takes the log to be at its end (`module/zfs/zil.c`,
`zil_read_log_block`).
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer
from torture.facts.recording.crash_state import DiskState, Policy

FAULT = Fault(
    name="log-on-one-leg",
    layer=Layer.DISK,
    words="the end of the log is on one leg of its mirror",
    cell="iscsi-always-mirror-btrfs-bothdie",
    seen_by=None,
    cuts=0,
    bound_to=frozenset({"slog"}),
    survivors={
        "slog0": DiskState(policy=Policy.ALL),
        "slog1": DiskState(policy=Policy.LYING, lying_ms=700),
    },
)

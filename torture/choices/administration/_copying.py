"""Whether ZFS has copied all to a new disk, by `zpool status -j`; what it writes is audited less."""

from __future__ import annotations

from typing import Any

from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.unreadable import UnreadableError

COPIED = frozenset(
    {
        Invariant.TXG_IS_DURABLE,
        Invariant.UBERBLOCK_IS_DURABLE,
        Invariant.ACKNOWLEDGED_IS_DURABLE,
        Invariant.LOG_CHAIN_IS_WHOLE,
        Invariant.EXTENT_IS_KEPT,
    }
)
"""What is copied to a new disk is no part of the group under way: until a later one says that the disk
lacks nothing (its DTL, OpenZFS `module/zfs/vdev.c`, `vdev_dtl_reassess`) nobody reads it from there. And
the copy of a block of the intent log, not covered yet, looks like the block that was covered long ago;
that of a block that a group has just written to the new disk as well takes its very place there."""


UNLABELLED = frozenset(
    {Invariant.TXG_IS_DURABLE, Invariant.LABELS_TAKE_TURNS, Invariant.UBERBLOCK_IS_DURABLE}
)
"""The labels of a disk that has left the pool, with all that lies about them, are overwritten once its
group is synced, beside the next one, and nothing flushes them (`vdev_label_init` with
`VDEV_LABEL_REMOVE`): they belong to no group."""


def has_resilvered(pool: dict[str, Any]) -> bool:
    """Whether the last resilver, or the last sequential one, came to its end, and no other goes on.

    Raises `UnreadableError`.
    """
    scan = pool.get("scan_stats", {})
    rebuilds = scan.get("rebuild_stats", {}) if isinstance(scan, dict) else None
    if not isinstance(rebuilds, dict):
        raise UnreadableError("zpool status -j: scan_stats that are none")
    try:
        states = [str(rebuild["state"]) for rebuild in rebuilds.values()]
    except (KeyError, TypeError) as error:
        raise UnreadableError(f"zpool status -j: a rebuild without a state: {error!r}") from error
    is_copying = scan.get("function") == "RESILVER"
    if "ACTIVE" in states or (is_copying and scan.get("state") != "FINISHED"):
        return False
    return is_copying or "COMPLETE" in states

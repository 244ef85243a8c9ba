"""The common parts of operations: datasets, ballast, and the writes to a disk that joins or leaves."""

from __future__ import annotations

from typing import Any

from torture.choices.volumes import POOL
from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.verdicts import UnreadableError

OTHER = f"{POOL}/other"
"""A dataset beside the client's volume, which is unaffected by it."""


def list_command(*properties: str) -> tuple[str, ...]:
    """`zfs list -j` of everything in the pool, with these properties (zfs-list(8); since 2.3)."""
    columns = ",".join(("name", *properties))
    return ("zfs", "list", "-j", "-p", "-r", "-t", "all", "-o", columns, POOL)


BALLAST = f"{POOL}/ballast"


def ballast_script(*, mib: int, options: str = "") -> str:
    """Shell: fill a filesystem of the pool, made with these options, and sync it.

    No two blocks are alike, yet their recording stays small.
    """
    make = f"zfs create {options} {BALLAST}" if options else f"zfs create {BALLAST}"
    return (
        f"set -eu; {make}; "
        f"seq 1000000 9999999 | head -c {mib}M > /{BALLAST}/ballast; zpool sync {POOL}"
    )


COPIED = frozenset(
    {
        Invariant.TXG_IS_DURABLE,
        Invariant.UBERBLOCK_IS_DURABLE,
        Invariant.ACKNOWLEDGED_IS_DURABLE,
        Invariant.LOG_CHAIN_IS_WHOLE,
        Invariant.EXTENT_IS_KEPT,
    }
)
"""The data copied to a new disk are no part of the group under way. A later group records that the
disk lacks nothing (its DTL, OpenZFS `module/zfs/vdev.c`, `vdev_dtl_reassess`); until then ZFS does
not read them from that disk.

A copied block of the intent log that is not yet covered looks like the block that was covered long
ago. A copied block that a group has just written to the new disk as well takes the same place
there.
"""


def has_resilvered(pool: dict[str, Any]) -> bool:
    """Whether the last resilver, also a sequential one, has ended, and no other one goes on.

    Raises `UnreadableError`.
    """
    scan = pool.get("scan_stats", {})
    rebuilds = scan.get("rebuild_stats", {}) if isinstance(scan, dict) else None
    if not isinstance(rebuilds, dict):
        raise UnreadableError("zpool status -j: invalid scan_stats")
    try:
        states = [str(rebuild["state"]) for rebuild in rebuilds.values()]
    except (KeyError, TypeError) as error:
        raise UnreadableError(f"zpool status -j: a rebuild without a state: {error!r}") from error
    is_copying = scan.get("function") == "RESILVER"
    if "ACTIVE" in states or (is_copying and scan.get("state") != "FINISHED"):
        return False
    return is_copying or "COMPLETE" in states

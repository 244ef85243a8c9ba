"""Queries about datasets of the pool, and the common parts of the operations on them."""

from __future__ import annotations

from torture.choices.volumes import POOL

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

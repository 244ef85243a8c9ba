"""Data of the NAS's own: on an empty pool the work behind a command would end at once."""

from __future__ import annotations

from torture.choices.volumes import POOL

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

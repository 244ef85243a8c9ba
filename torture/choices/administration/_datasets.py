"""What datasets of the pool are asked, and what the operations on them have in common."""

from __future__ import annotations

from torture.choices.volumes import POOL

OTHER = f"{POOL}/other"
"""A dataset beside the client's volume, which loses nothing whatever becomes of it."""


def list_command(*properties: str) -> tuple[str, ...]:
    """`zfs list -j` of all that the pool holds, with these properties (zfs-list(8); since 2.3)."""
    columns = ",".join(("name", *properties))
    return ("zfs", "list", "-j", "-p", "-r", "-t", "all", "-o", columns, POOL)

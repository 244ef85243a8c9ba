"""A `zpool` that does something else as well, in the NAS that comes back."""

from __future__ import annotations


def zpool_that(body: str) -> str:
    """Shell: put this script in its place; the real one is `/zpool.real`."""
    return (
        f"cp /usr/sbin/zpool /zpool.real && printf '#!/bin/sh\\n{body}\\n' > /zpool && "
        "chmod +x /zpool && mount --bind /zpool /usr/sbin/zpool"
    )

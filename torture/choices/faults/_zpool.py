"""A `zpool` with an added effect, in the NAS after its reboot."""

from __future__ import annotations


def zpool_that(body: str) -> str:
    """Shell: put this script in the place of `zpool`; the real one is `/zpool.real`."""
    return (
        f"cp /usr/sbin/zpool /zpool.real && printf '#!/bin/sh\\n{body}\\n' > /zpool && "
        "chmod +x /zpool && mount --bind /zpool /usr/sbin/zpool"
    )

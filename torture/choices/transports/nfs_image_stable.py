"""A hypervisor's NFS datastore whose every write is stable: how ESXi writes, and `sync` mounts do.

QEMU's own writethrough is different: it is an unstable write and a COMMIT (`block/io.c`,
`bdrv_driver_pwritev`). A COMMIT in flight at the cut is repeated to a server that has nothing left
to commit.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.nfs_image import NfsImage
from torture.choices.transports.protocol import Attachment, CompletedWrite, Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep


class NfsImageStable(NfsImage):
    """One image on one export. The client's disk reports a cache, and its flushes find it empty."""

    traits = replace(NfsImage.traits, completed=CompletedWrite.IN_LOG)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, opened with O_SYNC."""
        unstable = super().attachment(nas_host=nas_host)
        return replace(unstable, preload="libnfs_stable")


CHOICE: Choice[Transport] = Choice(
    name="nfs_image_stable",
    value=NfsImageStable(),
    words="NFS (image, stable writes)",
    explained="the same, every write stable, as ESXi's are",
    joins=frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
    place=41,
)

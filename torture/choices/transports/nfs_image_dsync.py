"""A hypervisor's NFS datastore with QEMU's `cache=directsync`, which looks like stable writes and is not.

QEMU turns a written-through write into an unstable one and a COMMIT (`block/io.c`,
`bdrv_driver_pwritev`). The client repeats a COMMIT in flight at the cut to a server that has
nothing left to commit. It succeeds: its write is gone, although the client received its
acknowledgement.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.nfs_image import NfsImage
from torture.choices.transports.protocol import Attachment, CompletedWrite, Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import Sweep
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee


class NfsImageDsync(NfsImage):
    """One image on one export."""

    traits = replace(NfsImage.traits, completed=CompletedWrite.IN_LOG)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, with a flush after each write."""
        unstable = super().attachment(nas_host=nas_host)
        return replace(unstable, is_written_through=True, has_write_cache=False)

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """Completed writes are in the log, until a client that lives sends a COMMIT to another server."""
        if sync is Sync.STANDARD and fate is Fate.NAS_ONLY:
            return Guarantee.LOSES
        return super().guarantee(sync=sync, fate=fate)


CHOICE: Choice[Transport] = Choice(
    name="nfs_image_dsync",
    value=NfsImageDsync(),
    words="NFS (image, QEMU writethrough)",
    explained="the same with QEMU's `cache=directsync`",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=42,
)

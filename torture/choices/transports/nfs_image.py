"""A hypervisor's NFS datastore: a raw image on a dataset, opened by the client's QEMU through libnfs.

QEMU's driver speaks NFSv3 and takes no port (its `block/nfs.c`). A flush is a COMMIT of the file.
The library ignores the write verifier, so a client that lives never repeats the writes that a
server forgot.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports import _knfsd
from torture.choices.transports._volumes import OfImage
from torture.choices.transports.protocol import Attachment, CompletedWrite, DiskSource, Transport
from torture.choices.volumes import dataset
from torture.facts.axes.axis import Choice
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import Sweep
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee


class NfsImage(_knfsd.Exported, OfImage):
    """One image on one export."""

    traits = _knfsd.traits(gives_files=False)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, as the client's second disk."""
        source = DiskSource(
            attributes={"protocol": "nfs", "name": dataset.IMAGE},
            within={"host": {"name": nas_host}, "identity": {"user": "+0", "group": "+0"}},
        )
        return Attachment(source=source, device="/dev/vdb")


class NfsImageStable(NfsImage):
    """Every write is stable: how ESXi writes, and `sync` mounts do.

    The client's disk reports a cache, and its flushes find it empty.
    """

    traits = replace(NfsImage.traits, completed=CompletedWrite.IN_LOG)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, opened with O_SYNC."""
        unstable = super().attachment(nas_host=nas_host)
        return replace(unstable, preload="libnfs_stable")


class NfsImageDsync(NfsImage):
    """QEMU's `cache=directsync`, which looks like stable writes and is not.

    QEMU turns a written-through write into an unstable one and a COMMIT (`block/io.c`,
    `bdrv_driver_pwritev`). The client repeats a COMMIT in flight at the cut to a server that has
    nothing left to commit. It succeeds: its write is gone, although the client received its
    acknowledgement.
    """

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


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="nfs_image",
        value=NfsImage(),
        words="NFS (image, libnfs)",
        explained="Linux's knfsd, a raw image on a dataset; the client's QEMU opens it through libnfs",
        joins=frozenset(
            {
                Sweep.DATASTORES,
                Sweep.TRANSPORTS,
                Sweep.TRANSPORTS_BEHIND_ALWAYS,
                Sweep.EVERY_TRANSPORT,
            }
        ),
        place=40,
    ),
    Choice(
        name="nfs_image_stable",
        value=NfsImageStable(),
        words="NFS (image, stable writes)",
        explained="the same, every write stable, as ESXi's are",
        joins=frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
        place=41,
    ),
    Choice(
        name="nfs_image_dsync",
        value=NfsImageDsync(),
        words="NFS (image, QEMU writethrough)",
        explained="the same with QEMU's `cache=directsync`",
        joins=frozenset({Sweep.EVERY_TRANSPORT}),
        place=42,
    ),
)

"""No network: pool and VM are on one host, as half of all home NASes have it.

The load runs in the guest that has the pool, so a cut ends both. A zvol is a disk there, and a dataset
has files. A hypervisor's image may lie on either of them.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.protocol import (
    Attachment,
    Mount,
    OfDataset,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import DIRECTORY, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.axis import Choice

_TRAITS = Traits(ports=(), is_local=True, nas_image="nas_local")


class _Unpublished:
    """The common part: nothing is offered to others."""

    def publish_script(self, options: VolumeOptions) -> str:
        """Nothing to do."""
        del options
        return "true"

    def wait_until_idle_script(self) -> str:
        """No client sends anything."""
        return "true"


class LocalZvol(_Unpublished, OfZvol):
    """The zvol's own device."""

    traits = _TRAITS

    def attachment(self, *, nas_host: str) -> Attachment:
        """It is there already."""
        del nas_host
        return Attachment(device=zvol.DEVICE)


class LocalFiles(_Unpublished, OfDataset):
    """The dataset's own directory.

    ZFS's log has every creation, rename and removal, and an fsync of any file or directory commits them
    all (OpenZFS module/zfs/zfs_log.c, `zfs_log_create`; zil.c, `zil_commit`).
    """

    traits = replace(_TRAITS, volume=VolumeKind.DATASET, gives_files=True)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The directory, where filesystems are mounted."""
        del nas_host
        return Attachment(mount=Mount(kind="none", source=DIRECTORY, needed="bind"))


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="local",
        value=LocalZvol(),
        words="on the NAS itself (zvol)",
        explained="pool and VM on one host, a zvol as disk; a cut ends both",
        place=70,
    ),
    Choice(
        name="local_files",
        value=LocalFiles(),
        words="on the NAS itself (dataset)",
        explained="the same with files, or an image, on a dataset",
        place=71,
    ),
)

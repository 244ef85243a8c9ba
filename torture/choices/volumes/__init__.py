"""The kinds of volume that a transport offers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.axes.early import Early
from torture.facts.axes.sync import Sync

POOL = "tank"
"""The name of the NAS's pool."""
VOLUME = f"{POOL}/vm"
"""The zvol or filesystem of the pool in which the client's disk lies."""
DIRECTORY = f"/{VOLUME}"
"""The mount point of a filesystem of the pool in the NAS (zfs-mount(8))."""
IMAGE = f"{DIRECTORY}/disk.raw"
"""An image file in it."""
SIZE_MIB = 512
"""The size of a client's disk."""


class VolumeKind(StrEnum):
    """The kind of a dataset in ZFS."""

    ZVOL = "zvol"
    DATASET = "dataset"
    """A filesystem, with files or with one image file in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeOptions:
    """How a cell wants its volume made and offered."""

    sync: Sync
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties for its creation (zfsprops(7))."""
    is_exported_async: bool = False
    """Whether an NFS server answers before anything is stable (exports(5), `async`)."""
    sector_bytes: int = 512
    """The logical sector size of the offered disk."""

    takes_discards: bool = False
    """Whether that disk accepts discards."""
    has_image: bool = False
    """Whether a hypervisor makes an image on it, and is back after the cut to claim it."""
    remembers_clients: bool = False
    """Whether an NFSv4 server keeps its records of clients on the pool."""
    order: Early = Early.IN_ORDER
    """The order in which a NAS that comes back publishes."""
    grace_s: int | None = None
    """The seconds in which clients of an NFSv4 server that came back claim their state again."""

    @property
    def words(self) -> str:
        """The options of `zfs create` for its properties."""
        every = {"sync": self.sync.value, **self.properties}
        return " ".join(f"-o {name}={value}" for name, value in every.items())


def set_sync_script(sync: Sync) -> str:
    """Shell: give the volume another `sync` property (zfsprops(7)); durable when it returns."""
    return f"zfs set sync={sync} {VOLUME} && zpool sync {POOL}"

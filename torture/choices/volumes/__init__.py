"""What in the pool a transport offers: one file a kind of volume. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.axes.sync import Sync

POOL = "tank"
"""The NAS's pool."""
VOLUME = f"{POOL}/vm"
"""What of it a client's disk lies in, a zvol or a filesystem."""
SIZE_MIB = 512
"""Of a client's disk."""


class VolumeKind(StrEnum):
    """What ZFS makes of it."""

    ZVOL = "zvol"
    DATASET = "dataset"
    """A filesystem, with files or with one image file in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeOptions:
    """How a cell wants its volume made and offered."""

    sync: Sync
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties it is made with (zfsprops(7))."""
    is_exported_async: bool = False
    """Whether an NFS server answers before anything is stable (exports(5), `async`)."""
    sector_bytes: int = 512
    """The logical sectors of the disk that it is offered as."""

    takes_discards: bool = False
    """Whether that disk takes discards."""

    @property
    def words(self) -> str:
        """What `zfs create` is told of its properties."""
        every = {"sync": self.sync.value, **self.properties}
        return " ".join(f"-o {name}={value}" for name, value in every.items())


def set_sync_script(sync: Sync) -> str:
    """Shell: give the volume another `sync` property (zfsprops(7)); durable when it returns."""
    return f"zfs set sync={sync} {VOLUME} && zpool sync {POOL}"

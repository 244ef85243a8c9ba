"""What the client keeps on its disk: one file a filesystem."""

from __future__ import annotations

from typing import Protocol

from torture.filesystems.btrfs import Btrfs
from torture.filesystems.ext4 import Ext4
from torture.filesystems.raw import Raw
from torture.filesystems.xfs import Xfs
from torture.matrix.axes import Filesystem

DEVICE = "/dev/vdb"
MOUNT_POINT = "/mnt"

Command = tuple[str, ...]


class FilesystemTools(Protocol):
    """The commands a filesystem is made, mounted, checked and mended with.

    `check` must leave the disk as it is. On a `Raw` disk there is nothing to mount.
    """

    has_files: bool

    def make(self, device: str) -> Command:
        """Make an empty one."""

    def mount(self, device: str, mount_point: str) -> Command:
        """Mount it, replaying its journal."""

    def check(self, device: str) -> Command:
        """Look for damage in the unmounted filesystem, changing nothing."""

    def repairs(self, device: str) -> tuple[Command, ...]:
        """Mend what can be mended; a further command is for when the one before refused (exit 2)."""


_FILESYSTEMS: dict[Filesystem, FilesystemTools] = {
    Filesystem.BTRFS: Btrfs(),
    Filesystem.EXT4: Ext4(),
    Filesystem.XFS: Xfs(),
    Filesystem.RAW: Raw(),
}


def tools_of(filesystem: Filesystem) -> FilesystemTools:
    """The tools of a choice on the filesystem axis."""
    return _FILESYSTEMS[filesystem]

"""What a filesystem has to say: how it is made, mounted, checked and mended, and what its check says."""

from __future__ import annotations

from typing import Protocol

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult

MOUNT_POINT = "/mnt"
"""Where the client has it."""

FILES = "files"
"""The choice of a client that has no disk."""

Command = tuple[str, ...]


class Filesystem(Protocol):
    """The commands of a filesystem, and how its checker is read.

    `check` must leave the disk as it is. On a `Raw` disk there is nothing to mount.
    """

    @property
    def has_files(self) -> bool:
        """Whether there is anything to mount."""

    @property
    def writes_once(self) -> bool:
        """Whether what an operation wrote is on its way to the disk once, and no journal has it as well.

        Else a second copy of it may be under way when the operation is acknowledged, and need not be
        covered: the audit then does not ask that of every block that holds it.
        """

    @property
    def looks_like_zfs(self) -> bool:
        """Whether it has uberblocks, labels and an intent log of its own.

        What the NAS's disks are asked for is told by content: these would be taken for the NAS's.
        """

    @property
    def root_words(self) -> str | None:
        """What tells a client's kernel of a root on it, beside `root=`; None where none boots from it."""

    def make(self, device: str) -> Command:
        """Make an empty one."""

    def mount(self, device: str, mount_point: str) -> Command:
        """Mount it, replaying its journal."""

    def discarding(self, mount_point: str) -> Command | None:
        """Have the mounted one discard what it frees from now on; None: it does not."""

    def scrub(self, mount_point: str) -> Command | None:
        """Read all copies of everything in the mounted filesystem, mending nothing; None: it has no such.

        What it finds stands in the kernel's log.
        """

    def first_check(self, device: str) -> Command | None:
        """Look for damage before anything mounts it, changing nothing.

        None where that says nothing before the journal is replayed: the mount is the first look then.
        """

    def check(self, device: str) -> Command:
        """Look for damage in the unmounted filesystem, changing nothing."""

    def repairs(self, device: str) -> tuple[Command, ...]:
        """Mend what can be mended; a further command is for when the one before refused (exit 2)."""

    def read_check(self, output: ToolOutput) -> FsckResult:
        """What `check` or a repair said; raises `UnreadableError` when that cannot be told."""

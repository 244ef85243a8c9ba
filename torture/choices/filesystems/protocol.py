"""The form of a filesystem: commands to make, mount, check and repair it, and a reader of its checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult

MOUNT_POINT = "/mnt"
"""Its mount point in the client."""

DEVICE = "DEVICE"
"""Stands for the client's disk in a command."""

FILES = "files"
"""The choice for a client without a disk."""

Command = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Filesystem:
    """The commands of a filesystem, and the reader of its checker's output."""

    make: Command
    """Make an empty one."""
    mount: Command
    """Mount it at `MOUNT_POINT`, replaying its journal."""
    discarding: Command | None = None
    """Make the mounted filesystem discard what it frees from now on; None: it does not."""
    scrub: Command | None = None
    """Read all copies of everything in the mounted filesystem, repairing nothing; None: it cannot.

    Its findings are in the kernel's log.
    """
    first_check: Command | None = None
    """Look for damage before the first mount, changing nothing.

    None where the check proves nothing before the journal is replayed: the mount is then the first
    look.
    """
    check: Command
    """Look for damage in the unmounted filesystem, and leave the disk as it is."""
    repairs: tuple[Command, ...]
    """Repair as much as possible; each next command is for a refusal of the one before (exit 2)."""
    read_check: Callable[[ToolOutput], FsckResult]
    """The result of `check` or a repair; raises `UnreadableError` when the output is ambiguous."""
    has_files: bool = True
    """Whether there is anything to mount."""
    writes_once: bool = True
    """Whether an operation's data go to the disk once, without a second copy in a journal.

    Otherwise a second copy may be in flight when the operation is acknowledged, and need not be
    covered. The audit then does not require cover for every block with these data.
    """
    looks_like_zfs: bool = False
    """Whether it has uberblocks, labels and an intent log of its own.

    The recording distinguishes the NAS's requests by content: these blocks would be taken for the
    NAS's.
    """
    root_words: str | None = None
    """Boot words for a client with its root on it, beside `root=`; None: it cannot boot from it."""

    def on(self, device: str) -> Self:
        """The same with this device in its commands."""

        def named(command: Command) -> Command:
            return tuple(device if word == DEVICE else word for word in command)

        return replace(
            self,
            make=named(self.make),
            mount=named(self.mount),
            first_check=None if self.first_check is None else named(self.first_check),
            check=named(self.check),
            repairs=tuple(map(named, self.repairs)),
        )

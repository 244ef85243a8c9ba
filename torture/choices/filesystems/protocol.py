"""The form of a filesystem: commands to make, mount, check and repair it, and a reader of its checks."""

from __future__ import annotations

from typing import Protocol

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult

MOUNT_POINT = "/mnt"
"""Its mount point in the client."""

FILES = "files"
"""The choice for a client without a disk."""

Command = tuple[str, ...]


class Filesystem(Protocol):
    """The commands of a filesystem, and the reader of its checker's output.

    `check` must leave the disk as it is. A `Raw` disk cannot be mounted.
    """

    @property
    def has_files(self) -> bool:
        """Whether there is anything to mount."""

    @property
    def writes_once(self) -> bool:
        """Whether an operation's data go to the disk once, without a second copy in a journal.

        Otherwise a second copy may be in flight when the operation is acknowledged, and need not be
        covered. The audit then does not require cover for every block with these data.
        """

    @property
    def looks_like_zfs(self) -> bool:
        """Whether it has uberblocks, labels and an intent log of its own.

        The recording distinguishes the NAS's requests by content: these blocks would be taken for
        the NAS's.
        """

    @property
    def root_words(self) -> str | None:
        """Boot words for a client with its root on it, beside `root=`; None: it cannot boot from it."""

    def make(self, device: str) -> Command:
        """Make an empty one."""

    def mount(self, device: str, mount_point: str) -> Command:
        """Mount it, replaying its journal."""

    def discarding(self, mount_point: str) -> Command | None:
        """Make the mounted filesystem discard what it frees from now on; None: it does not."""

    def scrub(self, mount_point: str) -> Command | None:
        """Read all copies of everything in the mounted filesystem, repairing nothing; None: it cannot.

        Its findings are in the kernel's log.
        """

    def first_check(self, device: str) -> Command | None:
        """Look for damage before the first mount, changing nothing.

        None where the check proves nothing before the journal is replayed: the mount is then the
        first look.
        """

    def check(self, device: str) -> Command:
        """Look for damage in the unmounted filesystem, changing nothing."""

    def repairs(self, device: str) -> tuple[Command, ...]:
        """Repair as much as possible; each next command is for a refusal of the one before (exit 2)."""

    def read_check(self, output: ToolOutput) -> FsckResult:
        """The result of `check` or a repair; raises `UnreadableError` when the output is ambiguous."""

"""A filesystem that is always well."""

from __future__ import annotations

from torture.choices.filesystems.protocol import Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult


class Dummy:
    """Its tools are words."""

    has_files = True
    writes_once = True
    looks_like_zfs = False
    root_words = None

    def make(self, device: str) -> tuple[str, ...]:
        """Make an empty one."""
        return ("mkfs.dummy", device)

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Mount it."""
        return ("mount", "-t", "dummy", device, mount_point)

    def discarding(self, mount_point: str) -> None:
        """It frees nothing."""

    def scrub(self, mount_point: str) -> tuple[str, ...]:
        return ("scrub.dummy", mount_point)

    def first_check(self, device: str) -> None:
        """It has no journal, so nothing mends it at the mount."""

    def check(self, device: str) -> tuple[str, ...]:
        """Look for damage."""
        return ("fsck.dummy", device)

    def repairs(self, device: str) -> tuple[tuple[str, ...], ...]:
        """There is nothing to mend."""
        return ()

    def read_check(self, output: ToolOutput) -> FsckResult:
        """It is clean when its checker says nothing."""
        return FsckResult(clean=output.exit_code == 0)


CHOICE: Choice[Filesystem] = Choice(name="dummyfs", value=Dummy(), words="a dummy filesystem")

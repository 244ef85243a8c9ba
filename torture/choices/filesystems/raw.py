"""No filesystem: the load writes to the bare disk, so every loss happened below the client."""

from __future__ import annotations

from torture.choices.filesystems.protocol import Filesystem
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult


class Raw:
    """A client without a filesystem of its own; a call of its tools is an error of the trial."""

    has_files = False
    writes_once = True
    looks_like_zfs = False
    root_words = None

    def make(self, device: str) -> tuple[str, ...]:
        """Refuse."""
        raise HarnessError(f"a raw disk has no filesystem to make on {device}")

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Refuse."""
        raise HarnessError(f"a raw disk cannot be mounted: {device} on {mount_point}")

    def discarding(self, mount_point: str) -> None:
        """None: it frees nothing."""

    def scrub(self, mount_point: str) -> None:
        """None: it keeps one copy of everything."""

    def first_check(self, device: str) -> None:
        """None: nothing is mounted, so there is no look before a mount."""

    def check(self, device: str) -> tuple[str, ...]:
        """Refuse."""
        raise HarnessError(f"a raw disk has no check: {device}")

    def repairs(self, device: str) -> tuple[tuple[str, ...], ...]:
        """Refuse."""
        raise HarnessError(f"a raw disk has no repair: {device}")

    def read_check(self, output: ToolOutput) -> FsckResult:
        """Refuse."""
        raise HarnessError(f"a raw disk has no check, yet there is one: {output.argv}")


CHOICE: Choice[Filesystem] = Choice(
    name="raw",
    value=Raw(),
    words="no filesystem",
    explained="no filesystem: which layer lost it?",
    joins=frozenset({Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=3,
)

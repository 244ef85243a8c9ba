"""XFS, with its defaults (xfs_repair(8))."""

from __future__ import annotations


class Xfs:
    """A mount replays the log; xfs_repair refuses a dirty one."""

    has_files = True

    def make(self, device: str) -> tuple[str, ...]:
        """Make an empty one."""
        return ("mkfs.xfs", "-q", "-f", device)

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Mount it, replaying its journal."""
        return ("mount", "-t", "xfs", device, mount_point)

    def check(self, device: str) -> tuple[str, ...]:
        """Look for damage, changing nothing."""
        return ("xfs_repair", "-n", device)

    def repairs(self, device: str) -> tuple[tuple[str, ...], ...]:
        """Mend what can be mended; zero the log (-L) only if the first refuses because of it."""
        return (("xfs_repair", device), ("xfs_repair", "-L", device))

"""btrfs, with its defaults (btrfs-check(8))."""

from __future__ import annotations


class Btrfs:
    """One device; metadata is duplicated by default."""

    has_files = True

    def make(self, device: str) -> tuple[str, ...]:
        """Make an empty one."""
        return ("mkfs.btrfs", "--quiet", "--force", device)

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Mount it, replaying its journal."""
        return ("mount", "-t", "btrfs", device, mount_point)

    def check(self, device: str) -> tuple[str, ...]:
        """Look for damage, changing nothing."""
        return ("btrfs", "check", "--readonly", device)

    def repairs(self, device: str) -> tuple[tuple[str, ...], ...]:
        """Mend what can be mended."""
        return (("btrfs", "check", "--repair", "--force", device),)

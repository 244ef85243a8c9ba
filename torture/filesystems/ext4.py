"""ext4, with its defaults: data=ordered (e2fsck(8), ext4(5))."""

from __future__ import annotations


class Ext4:
    """Lazy initialisation is off: it would write in the background of the first minutes."""

    has_files = True

    def make(self, device: str) -> tuple[str, ...]:
        """Make an empty one."""
        return ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Mount it, replaying its journal."""
        return ("mount", "-t", "ext4", device, mount_point)

    def check(self, device: str) -> tuple[str, ...]:
        """Look for damage, changing nothing."""
        return ("e2fsck", "-f", "-n", device)

    def repairs(self, device: str) -> tuple[tuple[str, ...], ...]:
        """Mend what can be mended."""
        return (("e2fsck", "-f", "-y", device),)

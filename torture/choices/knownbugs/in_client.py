"""A bug of the client's filesystem."""

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side

_NAMES = "iscsi-standard-noslog-btrfs-posix-bothdie"

# An fsync of a directory logs a new symbolic link in it as a whole. It notes that nothing of that inode
# is left to log. A rename logs the inode again, and leaves out the new name.
#
# The link has its old name after the crash, though its directory was fsynced after the rename. The fix
# has `btrfs_log_new_name` (fs/btrfs/tree-log.c) log all names of the inode. Linux 6.12.118 is without
# it. This suite met the bug before it knew of the fix, in 2 of 20 cuts [1.23-32 %].
BUG = KnownBug(
    name="btrfs-renamed-symlink",
    words="btrfs forgets the rename of a new symbolic link although its directory was fsynced",
    source="Linux 953902e4fb4c, reported by Vyacheslav Kovalevsky; not in Linux 6.12.118",
    affected=Side(cell=_NAMES),
    cleared=Side(cell=_NAMES, client_patches=("docs/reproducers/btrfs-renamed-symlink.patch",)),
    seen_by=Sight.DATA,
    cuts=28,
)

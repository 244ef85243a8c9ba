"""Bugs of the client's filesystem.

Linux 6.12 of Debian has the fixes of three. Their affected sides remove one each
(`vmimages/linux/unfixed`), and all sides but one have the fix that it lacks.
"""

from torture.choices.experiments.protocol import KnownBug, Side, Sight

_NAMES = "iscsi-standard-noslog-btrfs-chains-bothdie"
_FIX = "docs/reproducers/btrfs-renamed-symlink.patch"
_FIXED = Side(cell=_NAMES, client_patches=(_FIX,))


def _without(fix: str) -> Side:
    return Side(cell=_NAMES, client_patches=(_FIX, f"vmimages/linux/unfixed/{fix}.patch"))


EXPERIMENTS = (
    # A file has the old name of a moved directory. btrfs logs that directory with its new place alone.
    #
    # Replay adds the new name and removes no old one, so the directory has two links. The replay fails,
    # and with it the mount. Since the fix `can_log_conflicting_inode` (fs/btrfs/tree-log.c) takes in no
    # directory that was moved in this transaction, and the fsync commits instead.
    KnownBug(
        name="btrfs-moved-directory",
        words="btrfs cannot be mounted after an fsync of a file with a moved directory's old name",
        source="fstests generic/784; Linux 266273eaf4d9, fs/btrfs/tree-log.c",
        affected=_without("btrfs_moved_directory"),
        cleared=_FIXED,
        seen_by=Sight.FILESYSTEM,
        cuts=10,
    ),
    # A rename or link logs its directory, and each new directory in it, but not the inodes of the new
    # entries there. A later fsync of that directory logs only entries that are newer still.
    #
    # Replay drops an entry without an inode: a new file is gone although its directory was fsynced. The
    # test of fstests fsyncs the directory above alone, and expects the file, which fsync(2) does not
    # promise.
    KnownBug(
        name="btrfs-new-name",
        words="btrfs loses a new file although its directory was fsynced after a rename",
        source="fstests generic/785; Linux fs/btrfs/tree-log.c, log_new_dir_dentries",
        affected=_without("btrfs_new_name"),
        cleared=_FIXED,
        seen_by=Sight.DATA,
        cuts=10,
    ),
    # A file has the name of a removed directory. Its fsync logs the parent for that, without the inodes
    # of new entries. The loss is the same.
    KnownBug(
        name="btrfs-conflicting-parent",
        words="btrfs loses a new directory of an fsynced parent where a file has a removed one's name",
        source="fstests generic/790; Linux 9573a365ff9f, fs/btrfs/tree-log.c",
        affected=_without("btrfs_conflicting_parent"),
        cleared=_FIXED,
        seen_by=Sight.DATA,
        cuts=10,
    ),
    # An fsync of a directory logs a new symbolic link in it as a whole. It notes that nothing of that
    # inode is left to log. A rename logs the inode again, and leaves out the new name.
    #
    # The link has its old name after the crash, though its directory was fsynced after the rename. The
    # fix has `btrfs_log_new_name` (fs/btrfs/tree-log.c) log all names of the inode. Linux 6.12.118 is
    # without it. This suite met the bug with the load `posix` before it knew of the fix, in 2 of 20
    # cuts [1.23-32 %].
    KnownBug(
        name="btrfs-renamed-symlink",
        words="btrfs forgets the rename of a new symbolic link although its directory was fsynced",
        source="Linux 953902e4fb4c, reported by Vyacheslav Kovalevsky; not in Linux 6.12.118",
        affected=Side(cell=_NAMES),
        cleared=_FIXED,
        seen_by=Sight.DATA,
        cuts=10,
    ),
)

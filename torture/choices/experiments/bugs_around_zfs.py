"""Known bugs of the client, and of the servers and networks between it and ZFS.

Bugs of the client's filesystem.

Linux 6.12 of Debian has the fixes of three. Their affected sides remove one each
(`vmimages/linux/unfixed`), and all sides but one have the fix that it lacks.

Bugs of servers and clients on the way from the volume to the client's files.
"""

from __future__ import annotations

from torture.choices.experiments.protocol import KnownBug, Side, Sight

_NAMES = "iscsi-standard-noslog-btrfs-chains-bothdie"
_FIX = "docs/reproducers/btrfs-renamed-symlink.patch"
_FIXED = Side(cell=_NAMES, client_patches=(_FIX,))


def _without(fix: str) -> Side:
    return Side(cell=_NAMES, client_patches=(_FIX, f"vmimages/linux/unfixed/{fix}.patch"))


_SLOW_GROUPS = "standard-noslog-zfs.zfs_txg_timeout=60-raw-linkfails-bothdie"
_RECORDS = "smb-always-noslog-files-records-bothdie"

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
    # libnfs does not compare write verifiers: writes that an NFS server forgot in a reboot stay
    # lost.
    #
    # A client has to keep its unstable writes until a COMMIT returns the verifier of the WRITEs.
    # After another verifier, it has to write them again (RFC 1813, 3.3.7 and 3.3.21). Linux's own
    # client does (`nfs_commit_release_pages` in `fs/nfs/write.c`). libnfs reads no verifier
    # (`lib/nfs_v3.c`, 7.0.0). So QEMU's image over NFS loses the writes that the server had
    # completed and not committed. The cut spares the client, which commits after the server's
    # return.
    KnownBug(
        name="libnfs-verifier",
        words="libnfs ignores that the server's write verifier changed",
        source="libnfs lib/nfs_v3.c and lib/nfs_v4.c against RFC 1813 3.3.21; Linux fs/nfs/write.c",
        affected=Side(cell="nfs_image-standard-noslog-ext4-nasonly"),
        cleared=Side(cell="nfs4-standard-noslog-files-nasonly"),
        seen_by=Sight.DATA,
        cuts=5,
    ),
    # Linux's NFS server answers SETXATTR and REMOVEXATTR before they are stable; no client asks
    # again.
    #
    # `commit_metadata` in fs/nfsd/vfs.c commits other changes of names or attributes before the
    # answer (`nfsd_setattr`, `nfsd_create_setattr`, `nfsd_link`, `nfsd_rename`, `nfsd_unlink`).
    # `nfsd_setxattr` and `nfsd_removexattr` there do not call it. The client has nothing to commit
    # where no data were written (`nfs_file_fsync` in fs/nfs/file.c), so the user's fsync sends
    # nothing. The attribute that fsync(2) promised is in a transaction group in the NAS's memory.
    # The patch calls it. With sync=always ZFS commits an attribute before it returns, without the
    # patch. Found by this suite, with Linux 6.12 on both sides.
    KnownBug(
        name="nfsd-xattr",
        words="an extended attribute over NFSv4.2 is lost although it was fsynced",
        source="Linux fs/nfsd/vfs.c, nfsd_setxattr and nfsd_removexattr (RFC 8276), against fsync(2)",
        affected=Side(cell="nfs4-standard-noslog-files-posix-bothdie"),
        cleared=Side(
            cell="nfs4-standard-noslog-files-posix-bothdie",
            nas_patches=("docs/reproducers/nfsd-xattr-commit.patch",),
        ),
        seen_by=Sight.AUDIT,
        cuts=5,
    ),
    # The SMB client sends a whole page where an application has written a part of it with O_DSYNC.
    #
    # Of a page that it does not have it knows that part alone: the rest is whatever its memory held.
    # `netfs_advance_writethrough` (fs/netfs/write_issue.c) marks the folio dirty, and nothing clears
    # the mark once the part is written. The next writeback writes all of the folio. It is a regression
    # of b6a4ae1634b3, in the 6.12 series from 6.12.92 on. No cut is needed. Found by this suite.
    KnownBug(
        name="netfs-write-through",
        words="over SMB a small write with O_DSYNC replaces the rest of its page",
        source="Linux b6a4ae1634b3, fs/netfs/write_issue.c, netfs_advance_writethrough",
        affected=Side(cell=_RECORDS),
        cleared=Side(cell=_RECORDS, client_patches=("docs/reproducers/netfs-writethrough.patch",)),
        seen_by=Sight.DATA,
        cuts=3,
    ),
    # NVMe's native multipath answers a flush that has no path any more, and sends it to none.
    #
    # The block layer's own flush has no bio. `nvme_failover_req` (drivers/nvme/host/multipath.c) has
    # nothing to send again, and ends the request; `flush_end_io` then wakes the waiting fsync. A link
    # that fails for some seconds is enough: error recovery begins 7.6 to 8.6 s after the last answer.
    # The NAS lives, and lacks a flush that its client believes done. Without multipath
    # `nvme_retry_req` sends it again. Found by this suite, with Linux 6.12 on both sides.
    #
    # The prediction was the audit. It asks for the flush of completed writes alone, and those of the
    # dead link have not completed. The time of the answer shows the bug.
    KnownBug(
        name="nvme-multipath-flush",
        words="a failing link makes a flush over NVMe/TCP return 0 with native multipath",
        source="Linux drivers/nvme/host/multipath.c, nvme_failover_req",
        affected=Side(cell="nvme_tcp-standard-noslog-ext4-linkfails-bothdie"),
        cleared=Side(cell="nvme_tcp_single-standard-noslog-ext4-linkfails-bothdie"),
        seen_by=Sight.OUTAGE,
        cuts=5,
    ),
    # The same with two paths: the flush of the lost one is not sent to the other.
    #
    # The other path takes the requests with a bio again, and the flush is none of them. The target is
    # there all the time, and does not get it. A failover takes 6 to 9 s. With its own timeout of 5 s
    # ZFS has committed a group by then, in 16 of 16 cuts.
    #
    # The prediction was 5 cuts, and 8 of 25 showed it. A later flush of another writer commits the log of
    # the whole volume, and nothing is missing.
    KnownBug(
        name="nvme-two-paths-flush",
        words="a lost path of two makes a flush over NVMe/TCP return 0 with native multipath",
        source="Linux drivers/nvme/host/multipath.c, nvme_failover_req",
        affected=Side(cell=f"nvme_tcp_two-{_SLOW_GROUPS}"),
        cleared=Side(cell=f"nvme_tcp_single-{_SLOW_GROUPS}"),
        seen_by=Sight.AUDIT,
        cuts=12,
    ),
    # The replay of ZFS's intent log forgets an access time. An exclusive creation over NFS, which the
    # client sends again, then meets its own file.
    #
    # A server keeps the verifier of such a creation in the file's two times (`nfsd3_create_file`,
    # fs/nfsd/nfs3proc.c; RFC 1813, 3.3.8). `zfs_setattr` takes the access time from the inode, where
    # `zpl_setattr` has put it. Replay calls `zfs_setattr` alone (`zfs_replay_setattr`,
    # module/zfs/zfs_replay.c). Nothing acknowledged is lost: the application gets EEXIST. Found by
    # this suite. Before the first search with the fix it was 7 of 66 cuts [4.37-21 %].
    KnownBug(
        name="zfs-replay-atime",
        words="an exclusive creation over NFS meets its own file after the cut",
        source="OpenZFS module/os/linux/zfs/zfs_vnops_os.c, zfs_setattr; RFC 1813, 3.3.8",
        affected=Side(cell="nfs4-standard-noslog-files-nasonly"),
        cleared=Side(cell="nfs4-standard-noslog-files-nasonly", zfs="2.3.9+access_time_replayed"),
        seen_by=Sight.DATA,
        cuts=40,
        sign="met its own file",
    ),
    # A write-back LUN whose target reboots loses its completed writes, and its initiator writes
    # none again.
    #
    # SCSI lets a target cache writes (SBC-3, Caches). Only a power-on unit attention reports that
    # the cache is empty now. Neither libiscsi nor Linux's sd then repeats the writes that no
    # SYNCHRONIZE CACHE covered. LIO's fileio offers write-back with `write_back=true`
    # (drivers/target/target_core_file.c). With sync=always ZFS has logged each write before the
    # target completes it, so the cache holds nothing volatile.
    KnownBug(
        name="write-back-lun",
        words="a write-back LUN forgets completed writes as its target reboots",
        source="Linux drivers/target/target_core_file.c, SBC-3, Caches; zfsprops(7), sync",
        affected=Side(cell="fileio_wb-standard-noslog-ext4-nasonly"),
        cleared=Side(cell="fileio_wb-always-noslog-ext4-nasonly"),
        seen_by=Sight.DATA,
        cuts=4,
    ),
)

"""Bugs of ZFS: one version has them, and another one has not."""

from torture.choices.experiments.protocol import FromSource, KnownBug, Side, Sight

_EXPANDED = "iscsi-always-noslog-ext4-bothdie"
_EXPANSION = ("layout=raidz1", "administration=expand")
_QUEUES = ("zvol_use_blk_mq=blkmq",)
_FLUSHED = "iscsi-standard-noslog-ext4-bothdie"
_CLONES = "nfs4-standard-noslog-files-clones-bothdie"
_REMOVED = ("administration=removed",)
_HOLES = "ganesha-always-noslog-files-posix-bothdie"

EXPERIMENTS = (
    # A cut at the start of a RAIDZ expansion leaves a pool that takes itself for wider than it is.
    #
    # `zpool attach` to a raidz writes the vdev with its new child and waits until the frees of 12
    # transaction groups are done. Only then does it write that the vdev is being expanded
    # (`spa_vdev_attach` in `module/zfs/spa.c`). A cut in between leaves a configuration that
    # describes a wider raidz, while all blocks lie as in the old one. ZFS finds neither its own
    # data nor the user's. Every import ends with an I/O error: `unable to open rootbp in
    # dsl_pool_init [error=5]` in ZFS's own log. Since 7026d33350e4 both go into one transaction
    # group. In all releases with expansion, 2.3.0 to 2.3.9 and 2.4.0 to 2.4.4.
    #
    # A third of the cuts of an expansion falls at its start, with one of the first 64 uberblocks of
    # a disk after the command. Each transaction group writes 4 of these. So three in four of that
    # third, one cut in four, fall in between.
    KnownBug(
        name="raidz-expansion-start",
        words="a cut at the start of a RAIDZ expansion commits a wrong geometry",
        source="OpenZFS #18920, fixed by 7026d33350e4 (August 2026), in no release then",
        affected=Side(cell=_EXPANDED, axes=_EXPANSION, zfs="2.3.9"),
        cleared=Side(
            cell=_EXPANDED, axes=_EXPANSION, zfs=FromSource(name="master", branch="master")
        ),
        seen_by=Sight.POOL,
        cuts=11,
        sign="I/O error",
    ),
    # Flushes of a zvol behind `zvol_use_blk_mq=1` take the path of reads, and nothing is flushed.
    #
    # ZFS judged a request, as opposed to a bio, by `op_is_write`, which is no for `REQ_OP_FLUSH`.
    # On the path of reads a request without data completes at once (`zvol_request_impl` in
    # `module/os/linux/zfs/zvol_os.c`). LIO's SYNCHRONIZE CACHE is an empty write with
    # `REQ_PREFLUSH`; the kernel's flush machinery turns it into this kind of request. In 2.2.0 to
    # 2.2.8 and 2.3.0 to 2.3.4; writes with FUA were heeded.
    KnownBug(
        name="zvol-blk-mq-flush",
        words="a zvol's flushes are taken for reads with zvol_use_blk_mq=1",
        source="OpenZFS #17761, fixed by 8d4c3ee9e6f4, in 2.3.5 as 0bb5950e72b6",
        affected=Side(cell=_FLUSHED, axes=_QUEUES, zfs="2.3.2"),
        cleared=Side(cell=_FLUSHED, axes=_QUEUES, zfs="2.3.9"),
        seen_by=Sight.AUDIT,
    ),
    # ZFS ignores a zvol's flush that comes as a flag of a write rather than as an operation.
    #
    # Since Linux 4.10 `REQ_PREFLUSH` is a bit of `bi_opf`. A clean-up left only the comparison with
    # `REQ_OP_FLUSH`, which matches no bio (`bio_is_flush` in
    # `include/os/linux/kernel/linux/blkdev_compat.h`). LIO's SYNCHRONIZE CACHE, QEMU's fdatasync of
    # a zvol and a filesystem's own flushes all come as a flag. In 2.3.0 and 2.3.1, with bios, which
    # is the default.
    KnownBug(
        name="zvol-preflush",
        words="a zvol does not heed flushes",
        source="OpenZFS #17131, fixed by 41823a0ede88, in 2.3.2 as 112dca3483",
        affected=Side(cell=_FLUSHED, zfs=FromSource(name="2.3.1", branch="zfs-2.3.1")),
        cleared=Side(cell=_FLUSHED, zfs="2.3.2"),
        seen_by=Sight.AUDIT,
    ),
    # After the removal of a vdev ZFS frees a block that clones still need.
    #
    # The block reference table counts the files of a block by its first address. Metadata that are
    # written after the removal get the block's new address (`spa_remap_blkptr` in
    # `module/zfs/metaslab.c`), and the table has no entry for it. The first file that is deleted then
    # frees the block of all. Since 4abc21b28c22 blocks that may be cloned keep their address. The
    # affected side is 2.3.9 without that fix alone.
    #
    # It takes two transaction groups after the removal: one for the new addresses, one for the frees. A
    # cut falls into the 15 s behind the removal, so two in three are late enough.
    KnownBug(
        name="zfs-removal-clones",
        words="after the removal of a vdev a deleted file's blocks are freed under its clones",
        source="OpenZFS #15604 and #17180, fixed by 4abc21b28c22, in 2.3.2 as e6f8c1f612",
        affected=Side(cell=_CLONES, axes=_REMOVED, zfs="2.3.9+clones_remapped"),
        cleared=Side(cell=_CLONES, axes=_REMOVED, zfs="2.3.9"),
        seen_by=Sight.POOL,
        cuts=5,
    ),
    # With sync=always fallocate returns before anything of it is in the intent log.
    #
    # `zpl_fallocate_common` (module/os/linux/zfs/zpl_file.c) logs a punched hole or an extension, and
    # commits neither. FreeBSD's `zfs_deallocate` does. Linux's NFS server commits after a DEALLOCATE
    # (`nfsd4_vfs_fallocate` in fs/nfsd/vfs.c), and Ganesha relies on ZFS. Found by this suite, with
    # Ganesha's first cuts, in 1 of 2.
    KnownBug(
        name="zfs-fallocate-always",
        words="with sync=always a punched hole is lost after its call has returned",
        source="OpenZFS module/os/linux/zfs/zpl_file.c, zpl_fallocate_common, against zfsprops(7)",
        affected=Side(cell=_HOLES),
        cleared=Side(cell=_HOLES, zfs="2.3.9+fallocate_committed"),
        seen_by=Sight.AUDIT,
        cuts=5,
    ),
)

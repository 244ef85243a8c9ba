"""Faults of the NAS and of the client, and machines that stand still without a fault.

A client whose syncs do not reach its disk, or whose load stops.

A NAS that answers before its data are stable, or does not come back as it was.

Machines that stand still, come late, are busy, or change: nothing may be lost by it.

Damage after recovery, in the client that checks: it tests the checks themselves.
"""

from __future__ import annotations

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.choices.volumes import DIRECTORY, IMAGE, SIZE_MIB

_STOP = "sleep 2; pkill -STOP -f '[l]oad write'"

_OPTIONS = "rw,async,no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint"
_TARGET = "/sys/kernel/config/target"
_CACHING = f"{_TARGET}/core/fileio_0/vm"

_SERVE_FROM_CACHE = f"""set -eu
mkdir -p {_CACHING}
size=$(blockdev --getsize64 /dev/zvol/tank/vm)
echo -n fd_dev_name=/dev/zvol/tank/vm,fd_dev_size=$size,fd_buffered_io=1 > {_CACHING}/control
echo 1 > {_CACHING}/enable
lun=$(dirname $(find {_TARGET}/iscsi -type l -path '*/lun_0/vm'))
rm $lun/vm
ln -s {_CACHING} $lun/vm"""
_HALF_MIB = SIZE_MIB // 2


def _zpool_that(body: str) -> str:
    """Shell: put this script in the place of `zpool`; the real one is `/zpool.real`."""
    return (
        f"cp /usr/sbin/zpool /zpool.real && printf '#!/bin/sh\\n{body}\\n' > /zpool && "
        "chmod +x /zpool && mount --bind /zpool /usr/sbin/zpool"
    )


_BUSY = "for i in 1 2; do setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 & done"

_BLOCK_OF = (
    "dump-tree --roots {device} | sed -n 's/^data reloc tree .*) \\([0-9]*\\) level .*/\\1/p'"
)
_COPY_OF = "sed -n 's/^mirror 2 logical .* physical \\([0-9]*\\) device .*/\\1/p'"

_LOSE_COPY = f"""set -eu
block=$(btrfs inspect-internal {_BLOCK_OF})
copy=$(btrfs-map-logical -l $block {{device}} | {_COPY_OF})
test -n "$copy"
dd if=/dev/urandom of={{device}} bs=4096 seek=$((copy / 4096)) count=4 conv=notrunc,fsync
udevadm settle --timeout=20"""

_WIPE_SUPERBLOCKS = """set -eu
for mib in 0 128 256 384; do
    dd if=/dev/zero of={device} bs=1M seek=$mib count=1 conv=notrunc,fsync
done
udevadm settle --timeout=20"""

EXPERIMENTS = (
    # A client whose fsync does nothing: its files lie on a volatile overlay.
    #
    # A volatile mount omits every sync of the filesystem below it, and reports success (Linux
    # filesystems/overlayfs.rst). No setting of the NAS helps: acknowledged data have not left the
    # client.
    Fault(
        name="fsync-ignored",
        layer=Layer.CLIENT,
        words="the client's fsync does nothing",
        seen_by=Sight.AUDIT,
        bound_to=frozenset({"filesystem"}),
        in_client=(
            "mkdir /tmp/empty /mnt/work && mount -t overlay -o "
            "lowerdir=/tmp/empty,upperdir=/mnt/load,workdir=/mnt/work,volatile overlay /mnt/load"
        ),
    ),
    # A filesystem sends its disk no flush (ext4(5), barrier=0).
    Fault(
        name="no-barriers",
        layer=Layer.CLIENT,
        words="ext4 without barriers",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        bound_to=frozenset({"filesystem"}),
        in_client="mount -o remount,barrier=0 /mnt",
    ),
    # A load stops two seconds after its first acknowledgement: then no write is left for a cut to
    # take.
    #
    # Its writers are stopped amid their operations, so each has one operation under way for ever.
    # An instrument that counts these as work would call the cut intact.
    #
    # The transaction group after the last write comes 5 s later, and is at risk then: hence a long
    # load. Its cuts have no aim. A cut that aims at a trim or a label causes the write itself. So
    # it has a write to take (6 of 10 cuts of any aim were empty).
    Fault(
        name="load-stalled",
        layer=Layer.CLIENT,
        words="the load stalls",
        seen_by=Sight.EMPTY,
        aim="anywhere",
        load_ms=20_000,
        under_load=_STOP,
    ),
    # A server answers COMMIT and commits nothing: its export has silently become asynchronous.
    #
    # With `async`, Linux's server answers before anything is on stable storage (exports(5)).
    Fault(
        name="commit-ignored",
        layer=Layer.NAS,
        words="COMMIT is answered and nothing committed",
        cell="nfs3-standard-noslog-files-bothdie",
        seen_by=Sight.AUDIT,
        amounts_to={"nfs_export": "export_async"},
        in_nas=f"exportfs -o {_OPTIONS} '*:{DIRECTORY}' && exportfs -v | grep -q async",
    ),
    # LIO's backstore caches: `fileio` with buffered I/O on the zvol, in place of `iblock`, which
    # does not.
    #
    # With sync=always ZFS is not at fault: the written data are in the memory of the NAS, above
    # ZFS.
    Fault(
        name="lio-write-back",
        layer=Layer.NAS,
        words="LIO's backstore is write back",
        cell="iscsi-always-noslog-ext4-nasonly",
        seen_by=Sight.AUDIT,
        bound_to=frozenset({"transport"}),
        in_nas=_SERVE_FROM_CACHE,
    ),
    # After the reboot the volume has half its length.
    Fault(
        name="device-short",
        layer=Layer.NAS,
        words="the volume is half as long after import",
        cell="iscsi-always-noslog-raw-bothdie",
        seen_by=Sight.DATA,
        bound_to=frozenset({"filesystem"}),
        before_import=_zpool_that(
            '/zpool.real "$@" && case $1 in import) '
            f"if [ -e {IMAGE} ]; then truncate -s {_HALF_MIB}M {IMAGE}; "
            f"else zfs set volsize={_HALF_MIB}M tank/vm; fi;; esac"
        ),
    ),
    # The import of the pool does not end in the NAS after its reboot.
    #
    # The trial gives up after 20 s here, so that the fault costs no more time than others.
    Fault(
        name="nas-hangs",
        layer=Layer.NAS,
        words="the NAS hangs at import",
        seen_by=Sight.POOL,
        before_import=_zpool_that("sleep 600"),
        import_patience_s=20,
    ),
    # The kernel of the NAS panics after its reboot, when it imports the pool.
    Fault(
        name="nas-panics",
        layer=Layer.NAS,
        words="the NAS panics at import",
        seen_by=Sight.POOL,
        before_import=_zpool_that("echo c > /proc/sysrq-trigger; sleep 600"),
    ),
    # The pool is imported, and its volume is gone.
    Fault(
        name="volume-gone",
        layer=Layer.NAS,
        words="the volume is gone after import",
        seen_by=Sight.POOL,
        before_import=_zpool_that(
            '/zpool.real "$@" && case $1 in import) zfs destroy tank/vm;; esac'
        ),
    ),
    # The clocks of NAS and client are two days apart.
    Fault(
        name="clock-skewed",
        layer=Layer.NAS,
        words="the clocks are two days apart",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        in_nas="date --utc --set '+1 day'",
        in_client="date --utc --set '-1 day'",
    ),
    # Programs that only consume processor time run in NAS and client.
    Fault(
        name="cores-loaded",
        layer=Layer.NAS,
        words="NAS and client are busy with something else",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        in_nas=_BUSY,
        in_client=_BUSY,
    ),
    # The log device leaves the pool under the load, and joins it again.
    #
    # ZFS overwrites the labels of a device that leaves, and writes those of one that joins, outside of
    # any transaction group (OpenZFS `module/zfs/vdev_label.c`, `vdev_label_init`).
    Fault(
        name="log-device-moved",
        layer=Layer.NAS,
        words="the log device leaves and joins again under the load",
        cell="iscsi-always-plp-ext4-bothdie",
        seen_by=None,
        bound_to=frozenset({"slog"}),
        load_ms=8_000,
        in_nas=(
            "setsid sh -c 'sleep 0.5; zpool remove tank virtio-slog0 && "
            "zpool add -f tank log /dev/disk/by-id/virtio-slog0' </dev/null >/dev/null 2>&1 &"
        ),
    ),
    # A NAS is away for a minute: the client waits, and no timeout may become a loss.
    Fault(
        name="nas-back-late",
        layer=Layer.NAS,
        words="the NAS is back after 60 s",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        before_import="sleep 60",
    ),
    # The emulator of the NAS stands still for 12 s under the load: initiators wait longer than
    # that.
    Fault(
        name="nas-stood-still",
        layer=Layer.NAS,
        words="the NAS stood still for 12 s before the cut",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        nas_stands_still_ms=12_000,
    ),
    # One byte of a file is changed after recovery, and every checksum is right.
    Fault(
        name="byte-changed",
        layer=Layer.DATA,
        words="one byte of a recovered file is changed",
        seen_by=Sight.DATA,
        before_read_back=(
            "file=$(ls -S /mnt/load/* | head -n 1) && "
            "old=$(od -An -tu1 -j 1000 -N 1 $file) && "
            'printf "\\\\$(printf %o $(((old + 1) % 256)))" | '
            "dd of=$file bs=1 seek=1000 conv=notrunc,fsync"
        ),
    ),
    # 4 MiB of garbage lie on a bare device, where nothing was ever written.
    Fault(
        name="garbage-beyond",
        layer=Layer.DATA,
        words="garbage lies where nothing was written",
        cell="iscsi-always-noslog-raw-bothdie",
        seen_by=Sight.DATA,
        bound_to=frozenset({"filesystem"}),
        before_read_back=(
            "dd if=/dev/urandom of={device} bs=1M seek=300 count=4 conv=notrunc,fsync"
        ),
    ),
    # A file that was durable before the load is gone after recovery.
    Fault(
        name="old-file-gone",
        layer=Layer.DATA,
        words="a file from before the load is gone",
        seen_by=Sight.DATA,
        before_read_back="rm /mnt/load-before/3 && sync -f /mnt",
    ),
    # The second copy of a block of btrfs's metadata is lost; the first copy is intact.
    #
    # btrfs reads the first of two copies on one device (Linux `fs/btrfs/volumes.c`,
    # `map_blocks_dup`). Its checker does the same: only a scrub reads the second copy. The block is
    # the root of a tree that no load changes. So no commit moves the block before the scrub reads
    # it.
    Fault(
        name="copy-lost",
        layer=Layer.DATA,
        words="the second copy of btrfs's metadata is lost",
        cell="iscsi-always-noslog-btrfs-bothdie",
        seen_by=Sight.FILESYSTEM,
        bound_to=frozenset({"filesystem"}),
        before_mount=_LOSE_COPY,
    ),
    # All superblocks of the client's root are wiped after the cut: no initrd finds a filesystem
    # there.
    #
    # ext4 keeps copies of its superblock in some groups of 128 MiB (ext4(5), `sparse_super`). The
    # first block of each is wiped, so that fsck finds no copy.
    Fault(
        name="root-wiped",
        layer=Layer.DATA,
        words="the root's superblocks are wiped",
        cell="iscsi-always-noslog-ext4-boot-bothdie",
        seen_by=Sight.FILESYSTEM,
        bound_to=frozenset({"root"}),
        before_mount=_WIPE_SUPERBLOCKS,
    ),
)

"""Damage after recovery, in the client that checks: it tests the checks themselves."""

from torture.choices.experiments.protocol import Fault, Layer, Sight

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

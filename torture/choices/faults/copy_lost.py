"""The second copy of a block of btrfs's metadata is lost; the first copy is intact.

btrfs reads the first of two copies on one device (Linux `fs/btrfs/volumes.c`, `map_blocks_dup`).
Its checker does the same: only a scrub reads the second copy. The block is the root of a tree that
no load changes. So no commit moves the block before the scrub reads it.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

_BLOCK_OF = (
    "dump-tree --roots {device} | sed -n 's/^data reloc tree .*) \\([0-9]*\\) level .*/\\1/p'"
)
_COPY_OF = "sed -n 's/^mirror 2 logical .* physical \\([0-9]*\\) device .*/\\1/p'"

FAULT = Fault(
    name="copy-lost",
    layer=Layer.DATA,
    words="the second copy of btrfs's metadata is lost",
    cell="iscsi-always-noslog-btrfs-bothdie",
    seen_by=Sight.FILESYSTEM,
    cuts=1,
    bound_to=frozenset({"filesystem"}),
    before_mount=f"""set -eu
block=$(btrfs inspect-internal {_BLOCK_OF})
copy=$(btrfs-map-logical -l $block {{device}} | {_COPY_OF})
test -n "$copy"
dd if=/dev/urandom of={{device}} bs=4096 seek=$((copy / 4096)) count=4 conv=notrunc,fsync
udevadm settle --timeout=20""",
)

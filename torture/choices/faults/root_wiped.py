"""All superblocks of the client's root are wiped after the cut: no initrd finds a filesystem there.

ext4 keeps copies of its superblock in some groups of 128 MiB (ext4(5), `sparse_super`). The first
block of each is wiped, so that fsck finds no copy.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="root-wiped",
    layer=Layer.DATA,
    words="the root's superblocks are wiped",
    cell="iscsi-always-noslog-ext4-boot-bothdie",
    seen_by=Sight.FILESYSTEM,
    cuts=1,
    bound_to=frozenset({"root"}),
    before_mount="""set -eu
for mib in 0 128 256 384; do
    dd if=/dev/zero of={device} bs=1M seek=$mib count=1 conv=notrunc,fsync
done
udevadm settle --timeout=20""",
)

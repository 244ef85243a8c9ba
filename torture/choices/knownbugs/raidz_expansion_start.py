"""A cut at the start of a RAIDZ expansion leaves a pool that takes itself for wider than it is.

`zpool attach` to a raidz writes the vdev with its new child and waits until the frees of 12
transaction groups are done. Only then does it write that the vdev is being expanded
(`spa_vdev_attach` in `module/zfs/spa.c`). A cut in between leaves a configuration that describes a
wider raidz, while all blocks lie as in the old one. ZFS finds neither its own data nor the user's.
Every import ends with an I/O error: `unable to open rootbp in dsl_pool_init [error=5]` in ZFS's own
log. Since 7026d33350e4 both go into one transaction group. In all releases with expansion, 2.3.0 to
2.3.9 and 2.4.0 to 2.4.4.

A third of the cuts of an expansion falls at its start, with one of the first 64 uberblocks of a
disk after the command. Each transaction group writes 4 of these. So three in four of that third,
one cut in four, fall in between.
"""

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import FromSource, KnownBug, Side

_CELL = "iscsi-always-noslog-ext4-bothdie"
_AXES = ("layout=raidz1", "administration=expand")

BUG = KnownBug(
    name="raidz-expansion-start",
    words="a cut at the start of a RAIDZ expansion commits a wrong geometry",
    source="OpenZFS #18920, fixed by 7026d33350e4 (August 2026), in no release then",
    affected=Side(cell=_CELL, axes=_AXES, zfs="2.3.9"),
    cleared=Side(cell=_CELL, axes=_AXES, zfs=FromSource(name="master", branch="master")),
    seen_by=Sight.POOL,
    cuts=11,
    sign="I/O error",
)

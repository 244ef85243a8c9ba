"""The changed settings of ZFS on a cell's NAS, and the proof that each is in effect."""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.matrix.axes import SPECIAL_VDEV
from torture.choices.matrix.cells import Cell
from torture.choices.volumes import POOL, VOLUME, zvol
from torture.facts.axes.module_parameters import PARAMETERS, ZVOL_USE_BLK_MQ
from torture.facts.axes.zfs_properties import PROPERTIES

_PARAMETERS = "/sys/module/zfs/parameters"


LOAD_ZFS_ANEW = """
modprobe -r zfs
for again in 1 2 3; do rmmod zzstd zlua zunicode zcommon icp znvpair zavl spl 2>/dev/null; done
test ! -e /sys/module/spl && modprobe zfs
"""
"""Shell, of a NAS without a pool: load ZFS again, which seeds its random numbers (OpenZFS
`module/os/linux/spl/spl-generic.c`, `spl_random_init`). A resumed NAS was seeded before it was
saved. So every resumed one would draw the same numbers, by which ZFS distinguishes the intent log's
chains. OpenZFS 2.1 is nine modules, some of which outlive zfs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A setting, shell that prints a line, and the expected line when the setting is in effect."""

    name: str
    script: str
    expected: str


def parameters_script(cell: Cell) -> str:
    """Shell: set the module's parameters, before a pool is there; empty without a changed parameter."""
    fields = [axis.field for axis in PARAMETERS if cell[axis]]
    return " && ".join(f"echo 1 > {_PARAMETERS}/{field}" for field in fields)


def settings_of(cell: Cell) -> tuple[Setting, ...]:
    """All changed settings of a NAS with its pool and volume."""
    properties = [
        Setting(
            name=axis.field,
            script=f"zfs get -H -o value {axis.field} {VOLUME}",
            expected=cell[axis],
        )
        for axis in PROPERTIES
        if cell[axis]
    ]
    parameters = [
        Setting(name=axis.field, script=f"cat {_PARAMETERS}/{axis.field}", expected="1")
        for axis in PARAMETERS
        if cell[axis]
    ]
    return (*properties, *parameters, *_of_devices(cell))


def _of_devices(cell: Cell) -> tuple[Setting, ...]:
    """Settings that a device took over as it appeared, such as the kind of a zvol."""
    node = f"/sys/block/$(basename $(readlink -f {zvol.DEVICE}))"
    queues = Setting(
        name="queues of the zvol", script=f"test ! -d {node}/mq || echo several", expected="several"
    )
    special = Setting(
        name="special vdevs", script=f"zpool list -Hv {POOL} | grep -c ^special", expected="1"
    )
    return (
        *((queues,) if cell[ZVOL_USE_BLK_MQ] else ()),
        *((special,) if cell[SPECIAL_VDEV] else ()),
    )

"""The options of a cell's volume; the changed settings of ZFS, and the proof that each is in effect."""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.matrix.cells import (
    ADMINISTRATION,
    CLIENTS,
    DISCARD,
    EARLY,
    EVENT,
    IMAGE,
    LUN_SECTOR,
    NFS_EXPORT,
    SETTINGS,
    SPECIAL_VDEV,
    SYNC,
    TRANSPORT,
    Cell,
)
from torture.choices.volumes import DIRECTORY, POOL, VOLUME, VolumeOptions, zvol
from torture.facts.axes.event import Event
from torture.facts.axes.free_settings import GRACE
from torture.facts.axes.free_settings import POOL as POOL_PART
from torture.facts.axes.hypervisor import Clients, Image
from torture.facts.axes.setting import PARAMETERS
from torture.facts.axes.sync import NfsExport
from torture.machines.nas.pool import vdev_kinds

_SEVERAL_QUEUES = "zvol_use_blk_mq"
_KINDS_OF_VDEVS = r"s/^[[:space:]]*(mirror|raidz[0-9]|draid[^-[:space:]]*|logs|special).*/\1/p"
"""sed: of a line of a vdev that is no disk, its kind. Disks that are gone have other names."""
LAYOUT = "vdevs of the pool"
"""The setting that disks change as they leave and come."""
_PARAMETERS = "/sys/module/zfs/parameters"
HOST_ID, STANDBY_ID = "0a4d0002", "0a4d0003"
"""Of the NAS, by its address: 10.77.0.2."""


RELOAD_ZFS = """
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


def parameters_script(cell: Cell, *, is_standby: bool = False) -> str:
    """Shell: set the module's parameters, before a pool is there; empty without a changed parameter.

    A pool with `multihost` wants a host that has an id (zpoolprops(7), zgenhostid(8)), and a standby
    has another one.
    """
    parameters = (
        f"echo {value} > {_PARAMETERS}/{name}" for name, value in _parameters_of(cell).items()
    )
    has_identity = has_heartbeat(cell) or cell[EVENT] is Event.TAKEOVER
    host_id = STANDBY_ID if is_standby else HOST_ID
    identity = (f"zgenhostid -f {host_id}",) if has_identity else ()
    return " && ".join((*parameters, *identity))


def has_heartbeat(cell: Cell) -> bool:
    """Whether the host of the pool writes to it all the time, so that no other one imports it."""
    return cell[SETTINGS].pool_properties.get("multihost") == "on"


def _parameters_of(cell: Cell) -> dict[str, str]:
    return {axis.field: "1" for axis in PARAMETERS if cell[axis]} | cell[SETTINGS].tunables


def settings_of(cell: Cell) -> tuple[Setting, ...]:
    """All changed settings of a NAS with its pool and volume."""
    properties = [
        Setting(name=name, script=_property_script(name, value), expected=value)
        for name, value in cell[SETTINGS].properties.items()
    ]
    of_pool = [
        Setting(name=f"{POOL_PART}{name}", script=_pool_property_script(name), expected=value)
        for name, value in cell[SETTINGS].pool_properties.items()
    ]
    parameters = [
        Setting(name=name, script=f"cat {_PARAMETERS}/{name}", expected=value)
        for name, value in _parameters_of(cell).items()
    ]
    grace_s = cell[SETTINGS].grace_s
    grace = Setting(name=GRACE, script="cat /proc/fs/nfsd/nfsv4gracetime", expected=str(grace_s))
    return (
        *properties,
        *of_pool,
        *parameters,
        *_device_settings(cell),
        *(() if grace_s is None else (grace,)),
    )


def essentials_of(cell: Cell) -> tuple[Setting, ...]:
    """The settings on which every guarantee rests, changed or not.

    Each line is the same on any NAS of the cell. A weaker setting makes the cell look unsafe, and a
    stronger one makes it look safe.
    """
    parameters = {"zfs_nocacheflush": "0", "zil_nocacheflush": "0"} | _parameters_of(cell)
    flushes = ("zfs_nocacheflush", "zil_nocacheflush")
    files = " ".join(f"{_PARAMETERS}/{name}" for name in flushes)
    logbias = cell[SETTINGS].properties.get("logbias", "latency")
    essentials = [
        Setting(
            name="sync and logbias",
            script=f"echo $(zfs get -H -o value sync,logbias {VOLUME})",
            expected=f"{cell[SYNC]} {logbias}",
        ),
        Setting(
            name=" and ".join(flushes),
            script=f"echo $(cat {files})",
            expected=" ".join(parameters[name] for name in flushes),
        ),
    ]
    if cell[ADMINISTRATION] is None:  # which may change the layout
        essentials.append(
            Setting(
                name=LAYOUT,
                script=f"echo $(zpool list -Hv {POOL} | sed -nE '{_KINDS_OF_VDEVS}' | sort)",
                expected=" ".join(sorted(vdev_kinds(cell))),
            )
        )
    if cell[TRANSPORT].traits.is_nfs:
        essentials.append(
            Setting(
                name="export",
                script=f"echo $(exportfs -s | grep -F {DIRECTORY} | grep -owE 'a?sync')",
                expected="async" if cell[NFS_EXPORT] is NfsExport.ASYNC else "sync",
            )
        )
    of_target = cell[TRANSPORT].below.proofs(volume_options_of(cell))
    essentials += [
        Setting(name=name, script=script, expected=line)
        for name, (script, line) in of_target.items()
    ]
    return tuple(essentials)


def _property_script(name: str, value: str) -> str:
    """Shell: print the value; a size as the user wrote it."""
    asked = f"value {name} {VOLUME}"
    return f"zfs get -Hp -o {asked} | grep -xF -e {value} || zfs get -H -o {asked}"


def _pool_property_script(name: str) -> str:
    """Shell: print the value; a feature in use is enabled, too (zpool-features(7))."""
    return f"zpool get -Hp -o value {name} {POOL} | sed 's/^active$/enabled/'"


def _device_settings(cell: Cell) -> tuple[Setting, ...]:
    """Settings that a device took over as it appeared, such as the kind of a zvol."""
    node = f"/sys/block/$(basename $(readlink -f {zvol.DEVICE}))"
    queues = Setting(
        name="queues of the zvol", script=f"test ! -d {node}/mq || echo several", expected="several"
    )
    special = Setting(
        name="special vdevs", script=f"zpool list -Hv {POOL} | grep -c ^special", expected="1"
    )
    return (
        *((queues,) if cell[SETTINGS].tunables.get(_SEVERAL_QUEUES) == "1" else ()),
        *((special,) if cell[SPECIAL_VDEV] else ()),
    )


def volume_options_of(cell: Cell) -> VolumeOptions:
    """The volume options that the cell's axes set."""
    has_image = cell[IMAGE] is not Image.NONE
    has_clients = has_image and cell[TRANSPORT].traits.keeps_clients
    return VolumeOptions(
        sync=cell[SYNC],
        properties=cell[SETTINGS].properties,
        is_exported_async=cell[NFS_EXPORT] is NfsExport.ASYNC,
        sector_bytes=cell[LUN_SECTOR],
        takes_discards=cell[DISCARD],
        has_image=has_image,
        remembers_clients=has_clients and cell[CLIENTS] is Clients.REMEMBERED,
        order=cell[EARLY].order,
        grace_s=cell[SETTINGS].grace_s,
    )

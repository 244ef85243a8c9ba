"""Axes for single settings: every matrix has their default, users request the other choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from torture.facts.axes.axis import Axis, Choice, Chosen, applies_always
from torture.facts.axes.sweeps import EVERY_SWEEP

T = TypeVar("T")
Rule = Callable[[Chosen], str | None]


def setting_axis(
    field: str,
    *,
    title: str,
    place: int,
    default: Choice[T],
    others: tuple[Choice[T], ...],
    inapplicable: Rule = applies_always,
) -> Axis[T]:
    """The axis of a setting; hardly a matrix varies it, since theory predicts its effect on guarantees.

    A default that names no sweep joins them all.
    """
    return Axis(
        field=field,
        noun=field.title().replace("_", ""),
        title=title,
        place=place,
        choices=(replace(default, joins=default.joins or EVERY_SWEEP), *others),
        default=default.name,
        is_setting=True,
        inapplicable=inapplicable,
    )


def _choice(name: str, value: T, words: str, explained: str = "") -> Choice[T]:
    return Choice(name=name, value=value, words=words, explained=explained)


def only_with_a_log(chosen: Chosen) -> str | None:
    """The rule of a setting of the intent log: with `sync=disabled` ZFS writes none (zfsprops(7))."""
    sync = chosen["sync"].name
    return "concerns the intent log, and 'disabled' writes none" if sync == "disabled" else None


def only_on_a(kind: str) -> Rule:
    """The rule of a setting of one kind of volume, `zvol` or `dataset`."""

    def rule(chosen: Chosen) -> str | None:
        transport = chosen["transport"]
        has = transport.value.traits.volume
        return None if has == kind else f"applies to a {kind}, and {transport.name!r} is on a {has}"

    return rule


def _only_on_a_lun(has: Callable[[Any], bool], need: str) -> Rule:
    """The rule of a setting of a LUN, by the transport's traits."""

    def rule(chosen: Chosen) -> str | None:
        transport = chosen["transport"]
        return None if has(transport.value.traits) else f"{need}, and {transport.name!r} has none"

    return rule


class DiskSector(NamedTuple):
    """A disk's sector sizes in bytes."""

    logical: int
    physical: int


SECTOR_BEFORE = "sector512"
"""The choice of all runs from before `DISK_SECTOR`."""

SPECIAL_VDEV = setting_axis(
    "special_vdev",
    title="special vdev",
    place=55,
    default=_choice("nospecial", False, "no special vdev"),
    others=(_choice("special", True, "a special vdev", "one more disk, for metadata"),),
)
"""Whether the pool keeps its metadata on a special vdev: zpoolconcepts(7), "Special Allocation Class".

Its disk is like the data disks, and its content has no other copy.
"""

DISK_SECTOR = setting_axis(
    "disk_sector",
    title="NAS disks' sectors",
    place=59,
    default=_choice(
        "sector512e",
        DiskSector(512, 4096),
        "512e disks",
        "physical sectors of 4096 bytes, logical ones of 512",
    ),
    others=(
        _choice("sector4kn", DiskSector(4096, 4096), "4Kn disks", "4096 and 4096"),
        _choice(SECTOR_BEFORE, DiskSector(512, 512), "512n disks", "512 and 512"),
    ),
)
"""The logical and physical sectors of the NAS's own disks, in bytes.

ZFS uses the physical size for its `ashift` (OpenZFS `module/os/linux/zfs/vdev_disk.c`, `vdev_disk_open`),
and a write is torn at it. Current disks have physical sectors of 4096 bytes.
"""

LUN_SECTOR = setting_axis(
    "lun_sector",
    title="LUN's sectors",
    place=68,
    default=_choice("lun512", 512, "LUN with sectors of 512 bytes"),
    others=(_choice("lun4k", 4096, "LUN with sectors of 4096 bytes"),),
    inapplicable=_only_on_a_lun(
        lambda traits: 4096 in traits.sectors_bytes, "is the sector size of a LUN"
    ),
)
"""The logical sector size, in bytes, of the disk that the client sees.

A zvol has sectors of 512 bytes whatever its `volblocksize`, which only sets the physical block size
(OpenZFS `module/os/linux/zfs/zvol_os.c`, `zvol_queue_limits_apply`). So the target sets another logical
size, and the client's disk inherits it.
"""

DISCARD = setting_axis(
    "discard",
    title="discard",
    place=69,
    default=_choice("nodiscard", False, "no discard"),
    others=(
        _choice(
            "discard",
            True,
            "discard of what is freed",
            "the LUN takes it, and the client's filesystem discards what it frees",
        ),
    ),
    inapplicable=_only_on_a_lun(
        lambda traits: bool(traits.can_discard), "needs a LUN that supports it"
    ),
)
"""Whether the client's disk supports discards, and its filesystem discards freed blocks.

LIO offers discards only if configured to (drivers/target/target_core_configfs.c, `emulate_tpu_store`). A
zvol handles a discard like a write: it logs it as `TX_TRUNCATE`, and frees the blocks when the
transaction group syncs (OpenZFS `module/zfs/zvol.c`, `zvol_log_truncate`).
"""


class Interruption(NamedTuple):
    """A time in which the client cannot reach its volume, although both machines live."""

    length_s: float = 0.0
    is_of_target: bool = False
    """Whether the target or file server ends and starts again; else the link fails."""
    is_handover: bool = False
    """Whether another NAS imports the pool and takes the address; it lasts as long as that takes."""
    fills_pool: bool = False
    """Whether the pool has no space left from then on, until an operator frees some after the cut."""


def _only_where_a_target_can(chosen: Chosen) -> str | None:
    transport, interruption = chosen["transport"], chosen["nas_link"].value
    traits = transport.value.traits
    if traits.is_local and not (interruption.fills_pool or interruption == Interruption()):
        return f"needs a link, and {transport.name!r} has none"
    if interruption.is_of_target and not traits.target_scripts:
        return f"needs a target that restarts by itself, and {transport.name!r} has none"
    if interruption.is_handover and not traits.release_script:
        return f"needs a target that lets go of its volume, and {transport.name!r} has none"
    return None


NAS_LINK = setting_axis(
    "nas_link",
    title="NAS's link",
    place=85,
    default=_choice("linkup", Interruption(), "a link that stays"),
    others=(
        _choice(
            "linkfails",
            Interruption(length_s=16.0),
            "a link that fails",
            "it is down for 16 s amid the load, both machines live, and the cut comes later",
        ),
        _choice(
            "targetrestarts",
            Interruption(length_s=4.0, is_of_target=True),
            "a target that restarts",
            "it is gone for 4 s amid the load, with each session, and the cut comes later",
        ),
        _choice(
            "handover",
            Interruption(is_handover=True),
            "a standby takes over",
            "it exports the pool amid the load, a standby with the same disks imports it and "
            "takes its address, and the cut comes later",
        ),
        _choice(
            "poolfull",
            Interruption(fills_pool=True),
            "a pool that fills",
            "it has no space left amid the load, and an operator frees some after the cut",
        ),
    ),
    inapplicable=_only_where_a_target_can,
)
"""The interruption of the NAS's service before the cut.

Linux's NVMe host waits 7.6 to 8.6 s for an answer, by a measurement. Its SCSI layer waits 30 s
(`SD_TIMEOUT`, drivers/scsi/sd.h). A link is down for 16 s, between both. A target that ends closes
its connections, and its clients know at once.
"""


def _parameter(
    field: str, place: int, names: tuple[str, str], explained: str, inapplicable: Rule
) -> Axis[bool]:
    off, on = names
    return setting_axis(
        field,
        title=field,
        place=place,
        default=_choice(off, False, f"{field}=0"),
        others=(_choice(on, True, f"{field}=1", explained),),
        inapplicable=inapplicable,
    )


ZFS_NOCACHEFLUSH = _parameter(
    "zfs_nocacheflush",
    65,
    ("cacheflush", "nocacheflush"),
    "ZFS flushes no disk at all",
    applies_always,
)
ZIL_NOCACHEFLUSH = _parameter(
    "zil_nocacheflush",
    66,
    ("zilcacheflush", "zilnocacheflush"),
    "ZFS does not flush its intent log",
    only_with_a_log,
)
PARAMETERS: tuple[Axis[bool], ...] = (ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH)
"""Parameters of ZFS's kernel module on the NAS (zfs(4)): one axis each, named after the parameter.

They are written after each boot of the NAS, before it has a pool.
"""

"""Axes for single settings: every matrix has their default, users request the other choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from torture.facts.axes.axis import Axis, Chosen, applies_always, choice_of, table_beside
from torture.facts.axes.sweeps import EVERY_SWEEP

T = TypeVar("T")
Rule = Callable[[Chosen], str | None]
_TABLES = table_beside(__file__)


def axis_of(
    field: str,
    table: Mapping[str, Any],
    value_of: Callable[[dict[str, Any]], T],
    inapplicable: Rule = applies_always,
) -> Axis[T]:
    """The axis of a setting; hardly a matrix varies it, since theory predicts its effect on guarantees.

    The table has its `title`, its `place` and its `choices`, each with its value in its row. A default
    that names no sweep joins them all.
    """
    default, *others = (choice_of(row, value_of(row)) for row in table["choices"])
    return Axis(
        field=field,
        noun=field.title().replace("_", ""),
        title=table["title"],
        place=table["place"],
        choices=(replace(default, joins=default.joins or EVERY_SWEEP), *others),
        default=default.name,
        is_setting=True,
        inapplicable=inapplicable,
    )


def _axis(field: str, value_of: Callable[[Any], T], inapplicable: Rule = applies_always) -> Axis[T]:
    return axis_of(field, _TABLES[field], lambda row: value_of(row["value"]), inapplicable)


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

SPECIAL_VDEV = _axis("special_vdev", bool)
"""Whether the pool keeps its metadata on a special vdev: zpoolconcepts(7), "Special Allocation Class".

Its disk is like the data disks, and its content has no other copy.
"""

DISK_SECTOR = _axis("disk_sector", DiskSector._make)
"""The logical and physical sectors of the NAS's own disks, in bytes.

ZFS uses the physical size for its `ashift` (OpenZFS `module/os/linux/zfs/vdev_disk.c`, `vdev_disk_open`),
and a write is torn at it. Current disks have physical sectors of 4096 bytes.
"""

LUN_SECTOR = _axis(
    "lun_sector",
    int,
    _only_on_a_lun(lambda traits: 4096 in traits.sectors_bytes, "is the sector size of a LUN"),
)
"""The logical sector size, in bytes, of the disk that the client sees.

A zvol has sectors of 512 bytes whatever its `volblocksize`, which only sets the physical block size
(OpenZFS `module/os/linux/zfs/zvol_os.c`, `zvol_queue_limits_apply`). So the target sets another logical
size, and the client's disk inherits it.
"""

DISCARD = _axis(
    "discard",
    bool,
    _only_on_a_lun(lambda traits: bool(traits.can_discard), "needs a LUN that supports it"),
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

    @property
    def is_of_link(self) -> bool:
        """Whether the link fails."""
        return self.length_s > 0 and not self.is_of_target


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


NAS_LINK = _axis("nas_link", lambda value: Interruption(**value), _only_where_a_target_can)
"""The interruption of the NAS's service before the cut."""
ZFS_NOCACHEFLUSH = _axis("zfs_nocacheflush", bool)
ZIL_NOCACHEFLUSH = _axis("zil_nocacheflush", bool, only_with_a_log)
PARAMETERS: tuple[Axis[bool], ...] = (ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH)
"""Parameters of ZFS's kernel module on the NAS (zfs(4)): one axis each, named after the parameter.

They are written after each boot of the NAS, before it has a pool.
"""

"""Axes of a hypervisor between the NAS and its VM: the image, the cache mode, and QEMU's engine.

The client mounts the NAS's export or logs in to its LUN with its own kernel. QEMU's block layer opens an
image there, and the VM's disk is that image. `hypervisor.toml` has the choices' words and sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeVar

from torture.facts.axes.axis import Axis, Chosen, table_beside
from torture.facts.axes.setting import Rule, axis_of

T = TypeVar("T")
_TABLES = table_beside(__file__)


class Image(StrEnum):
    """The content of the file or LUN that the hypervisor opens."""

    NONE = "noimage"
    """No hypervisor: the VM's disk is the transport's own."""
    RAW = "rawimage"
    QCOW2 = "qcow2"
    QCOW2_PREALLOCATED = "qcow2pre"
    """With all of its metadata from the start (qemu-img(1), `preallocation=metadata`)."""
    LVM = "lvm"
    """A logical volume on the LUN, raw."""

    @property
    def driver(self) -> str:
        """The driver of QEMU's block layer for it."""
        is_qcow2 = self in (Image.QCOW2, Image.QCOW2_PREALLOCATED)
        return "qcow2" if is_qcow2 else "raw"


class Cache(StrEnum):
    """A cache mode (qemu-system(1), `-drive cache=`): a cell of QEMU's documented table."""

    NONE = "cachenone"
    WRITEBACK = "writeback"
    WRITETHROUGH = "writethrough"
    DIRECTSYNC = "directsync"
    UNSAFE = "unsafe"
    NOFLUSH = "noflush"
    """`cache.direct=on,cache.no-flush=on`. XenServer's tapdisk and ESXi's VMFS send no flush either."""

    @property
    def is_direct(self) -> bool:
        """Whether QEMU opens the image with O_DIRECT, past the hypervisor's page cache."""
        return self in (Cache.NONE, Cache.DIRECTSYNC, Cache.NOFLUSH)

    @property
    def forwards_flushes(self) -> bool:
        """Whether a flush of the VM goes on to the image."""
        return self not in (Cache.UNSAFE, Cache.NOFLUSH)

    @property
    def is_written_through(self) -> bool:
        """Whether QEMU flushes after each write itself, and the VM's disk has no write cache."""
        return self in (Cache.WRITETHROUGH, Cache.DIRECTSYNC)


class Aio(StrEnum):
    """The engine of QEMU's requests to the image (qemu-system(1), `-drive aio=`)."""

    IO_URING = "io_uring"
    THREADS = "threads"
    NATIVE = "native"


class Bus(StrEnum):
    """The VM's own requests to its disk: it offers forced writes (FUA), or flushes alone."""

    FUA = "fua"
    """As virtio-scsi of machine types from 10.1 on does, and NVMe (QEMU hw/core/machine.c,
    `hw_compat_10_0`)."""
    FLUSHES = "flushonly"
    """As virtio-blk does (virtio 1.2, 5.2.3)."""


class Locks(StrEnum):
    """Whether QEMU locks the image (qemu-system(1), `-blockdev`, `locking`)."""

    UNLOCKED = "unlocked"
    LOCKED = "locked"


class Clients(StrEnum):
    """Whether an NFSv4 server knows its clients after a reboot (Linux fs/nfsd/nfs4recover.c)."""

    REMEMBERED = "remembered"
    """Their records are on the pool, as TrueNAS has them. A client reclaims its locks."""
    FORGOTTEN = "forgotten"
    """Their records are in the NAS's memory."""


class Qemu(NamedTuple):
    """The hypervisor's QEMU, and the image of a client that has it."""

    version: str
    image: str


_QEMUS = {
    "qemu100": Qemu("10.0", "client_hypervisor"),
    "qemu111": Qemu("11.1", "client_qemu11"),
}


def _without_hypervisor(chosen: Chosen) -> str | None:
    if chosen["image"].value is Image.NONE:
        return f"is of a hypervisor's image, and {chosen['transport'].name!r} is without one"
    return None


def _of_image(chosen: Chosen) -> str | None:
    """An image needs a file or disk that the client's kernel attaches, and LVM needs the disk."""
    transport, traits = chosen["transport"].name, chosen["transport"].value.below.traits
    if not traits.takes_hypervisor:
        return f"needs a kernel that attaches {transport!r}, and one alone"
    if chosen["image"].value is Image.LVM and traits.gives_files:
        return f"needs a disk, and {transport!r} gives files"
    return None


def _of_cache(chosen: Chosen) -> str | None:
    is_own = chosen["transport"].value.below.cached(chosen["cache"].name) is not None
    return None if is_own else _without_hypervisor(chosen)


def _of_aio(chosen: Chosen) -> str | None:
    if chosen["aio"].value is Aio.NATIVE and not chosen["cache"].value.is_direct:
        return f"needs O_DIRECT, and {chosen['cache'].name!r} goes through the page cache"
    return _without_hypervisor(chosen)


def _of_bus(chosen: Chosen) -> str | None:
    if chosen["cache"].value.is_written_through:
        return "is of flushes, and a disk that is written through gets none"
    return _without_hypervisor(chosen)


def _of_clients(chosen: Chosen) -> str | None:
    if not chosen["transport"].value.below.traits.keeps_clients:
        return f"is for NFSv4, and {chosen['transport'].name!r} keeps no state of its clients"
    return _without_hypervisor(chosen)


def _of_own_image(chosen: Chosen) -> str | None:
    is_local = chosen["transport"].value.traits.is_local
    if is_local and chosen["hypervisor"].value is not _QEMUS["qemu100"]:
        return "needs a client of its own image"
    return _without_hypervisor(chosen)


def _axis(field: str, value_of: Callable[[str], T], inapplicable: Rule) -> Axis[T]:
    return axis_of(field, _TABLES[field], lambda row: value_of(row["name"]), inapplicable)


IMAGE = _axis("image", Image, _of_image)
CACHE = _axis("cache", Cache, _of_cache)
AIO = _axis("aio", Aio, _of_aio)
BUS = _axis("bus", Bus, _of_bus)
LOCKS = _axis("locks", Locks, _of_clients)
CLIENTS = _axis("clients", Clients, _of_clients)
QEMU = _axis("hypervisor", _QEMUS.__getitem__, _of_own_image)
QEMU_VERSIONS = {choice.value.version: choice.name for choice in QEMU.choices}
"""The names of its choices, by their versions."""
AXES = (IMAGE, CACHE, AIO, BUS, LOCKS, CLIENTS, QEMU)

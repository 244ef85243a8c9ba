"""Axes of a hypervisor between the NAS and its VM: the image, the cache mode, and QEMU's engine.

The client mounts the NAS's export or logs in to its LUN with its own kernel. QEMU's block layer opens an
image there, and the VM's disk is that image. Each default is Proxmox VE's (qemu-server,
src/PVE/QemuServer/Drive.pm and Blockdev.pm; its QEMU's debian/patches/pve/0001).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import Rule, setting_axis
from torture.facts.axes.sweeps import EVERY_SWEEP, HYPERVISOR_SWEEPS, Sweep

E = TypeVar("E", bound=StrEnum)


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


_FILES, _LUNS, _LIBVIRT = (
    frozenset({sweep})
    for sweep in (
        Sweep.HYPERVISOR_ON_FILES, Sweep.HYPERVISOR_ON_LUNS, Sweep.HYPERVISOR_OF_LIBVIRT,
    )
)  # fmt: skip
_NO_FLUSH = frozenset({Sweep.HYPERVISOR_WITHOUT_FLUSHES})
_NONE = frozenset[Sweep]()
_DIRECTSYNC = frozenset({Sweep.LIBNFS_DIRECTSYNC})


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


Row = tuple[str, str, frozenset[Sweep]]
"""A choice's words, its explanation, and the sweeps that it joins."""


def _axis(
    field: str, *, title: str, place: int, rows: Mapping[E, Row], inapplicable: Rule
) -> Axis[E]:
    """The axis of these choices, the first of which is the default."""
    default, *others = (
        Choice(name=value.value, value=value, words=words, explained=explained, joins=joins)
        for value, (words, explained, joins) in rows.items()
    )
    return setting_axis(
        field,
        title=title,
        place=place,
        default=default,
        others=tuple(others),
        inapplicable=inapplicable,
        joins=default.joins,
    )


IMAGE = _axis(
    "image",
    title="VM's image",
    place=11,
    inapplicable=_of_image,
    rows={
        Image.NONE: ("no hypervisor's image", "", EVERY_SWEEP - HYPERVISOR_SWEEPS),
        Image.RAW: (
            "raw image",
            "a hypervisor mounts or logs in, and QEMU opens a raw file or the LUN there",
            HYPERVISOR_SWEEPS,
        ),
        Image.QCOW2: ("qcow2 image", "the same with qcow2", _FILES | _LIBVIRT),
        Image.QCOW2_PREALLOCATED: (
            "qcow2 image, preallocated metadata",
            "as Proxmox VE makes it in its GUI",
            _NONE,
        ),
        Image.LVM: ("logical volume", "on the LUN", _LUNS),
    },
)
CACHE = _axis(
    "cache",
    title="cache mode",
    place=12,
    inapplicable=_of_cache,
    rows={
        Cache.NONE: ("cache=none", "", EVERY_SWEEP - _LIBVIRT - _NO_FLUSH - _DIRECTSYNC),
        Cache.WRITEBACK: (
            "cache=writeback",
            "through the hypervisor's page cache",
            _FILES | _LIBVIRT,
        ),
        Cache.WRITETHROUGH: ("cache=writethrough", "", _NONE),
        Cache.DIRECTSYNC: ("cache=directsync", "a flush after each write, by QEMU", _DIRECTSYNC),
        Cache.UNSAFE: (
            "cache=unsafe",
            "through the page cache, and flushes end at the hypervisor",
            _NONE,
        ),
        Cache.NOFLUSH: (
            "direct writes, no flush",
            "flushes end at the hypervisor, as XenServer's and ESXi's (VMFS) do",
            _NO_FLUSH,
        ),
    },
)
AIO = _axis(
    "aio",
    title="QEMU's aio",
    place=13,
    inapplicable=_of_aio,
    rows={
        Aio.IO_URING: ("aio=io_uring", "", EVERY_SWEEP - _LIBVIRT),
        Aio.THREADS: ("aio=threads", "libvirt's", _LIBVIRT),
        Aio.NATIVE: ("aio=native", "", _NONE),
    },
)
BUS = _axis(
    "bus",
    title="VM's disk",
    place=14,
    inapplicable=_of_bus,
    rows={
        Bus.FUA: ("disk with forced writes", "", EVERY_SWEEP),
        Bus.FLUSHES: (
            "disk without forced writes",
            "virtio-blk; the default is virtio-scsi of machine types from 10.1 on",
            _NONE,
        ),
    },
)
LOCKS = _axis(
    "locks",
    title="QEMU's locks",
    place=16,
    inapplicable=_of_clients,
    rows={
        Locks.UNLOCKED: ("image not locked", "", EVERY_SWEEP - _LIBVIRT),
        Locks.LOCKED: ("image locked", "by QEMU, over NFSv4: libvirt's default", _LIBVIRT),
    },
)
CLIENTS = _axis(
    "clients",
    title="NFSv4 clients",
    place=17,
    inapplicable=_of_clients,
    rows={
        Clients.REMEMBERED: ("server remembers its clients", "", EVERY_SWEEP),
        Clients.FORGOTTEN: (
            "server forgets its clients",
            "its records of them are not on the pool",
            _NONE,
        ),
    },
)

_QEMUS = (Qemu("10.0", "client_hypervisor"), Qemu("11.1", "client_qemu11"))
"""Debian 13's, and that of its backports."""
_OF_QEMU = tuple(
    Choice(
        name=f"qemu{qemu.version.replace('.', '')}",
        value=qemu,
        words=f"QEMU {qemu.version}",
        explained="Debian 13's" if qemu is _QEMUS[0] else "of Debian 13's backports",
    )
    for qemu in _QEMUS
)


def _of_own_image(chosen: Chosen) -> str | None:
    is_local = chosen["transport"].value.traits.is_local
    if is_local and chosen["hypervisor"].value is not _QEMUS[0]:
        return "needs a client of its own image"
    return _without_hypervisor(chosen)


QEMU: Axis[Qemu] = setting_axis(
    "hypervisor",
    title="hypervisor's QEMU",
    place=18,
    default=_OF_QEMU[0],
    others=_OF_QEMU[1:],
    inapplicable=_of_own_image,
)
QEMU_VERSIONS = {choice.value.version: choice.name for choice in QEMU.choices}
"""The names of its choices, by their versions."""
AXES = (IMAGE, CACHE, AIO, BUS, LOCKS, CLIENTS, QEMU)

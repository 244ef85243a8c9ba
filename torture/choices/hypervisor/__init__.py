"""A hypervisor in the client: QEMU's block layer opens an image on a transport, for its VM's disk.

The client mounts or logs in with its own kernel, as Proxmox VE, libvirt and oVirt do. `qemu-nbd` and
`qemu-storage-daemon` are QEMU's block layer without a machine: cache modes, engines and image formats
are the same code as `-drive`'s (qemu-nbd(8), qemu-storage-daemon(1)). The first one's disk is the
kernel's nbd, which sends forced writes. The other one's is virtio-blk, over VDUSE (Linux
drivers/vdpa/vdpa_user).

Linux's NFS client keeps its unstable writes until a COMMIT, and repeats them when the server's write
verifier has changed (fs/nfs/write.c). A write with O_DIRECT is stable when it completes (fs/nfs/direct.c,
`nfs_direct_write_complete`). A LUN may forget a completed write that was not flushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache as kept
from shlex import quote
from typing import Any

from torture.choices.transports.protocol import (
    Attachment,
    CompletedWrite,
    Traits,
    Transport,
    VmImage,
)
from torture.choices.volumes import SIZE_MIB, VolumeOptions
from torture.choices.workloads.protocol import CLIENT_IMAGE
from torture.facts.axes.away import Patience
from torture.facts.axes.axis import Chosen
from torture.facts.axes.fate import Fate
from torture.facts.axes.hypervisor import Aio, Bus, Cache, Clients, Image, Locks, Qemu
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee
from torture.shell import wait_for_path

_STORE = "/run/store"
"""The mount point of the hypervisor's store."""
_DEVICES = {Bus.FUA: "/dev/nbd0", Bus.FLUSHES: "/dev/vdb"}
_PID, _TRACE = "/run/hypervisor.pid", "/run/hypervisor.trace"
_ERRORS, _LOCKED_TRIES = "/run/hypervisor.err", 100
"""A lease of knfsd's is 90 s as it ships (Linux fs/nfsd/nfs4state.c)."""
_ON_WIRE = {Cache.WRITEBACK: False} | {mode: True for mode in Cache if mode.is_direct}
"""Of `unsafe` and `writethrough` the server may see single pages alone, which Linux sends stable."""
_METADATA_MIB = 32
"""The part of a LUN that an image's metadata, or LVM's, may take."""
_GROUP = "vm"
_LVM = "--config 'activation { udev_sync = 0 udev_rules = 0 }'"
"""Nodes come from LVM itself: the guest has no rules of udev for them."""
_O_DIRECT = "040000"
_OF_IO_URING = "luring_co_submit"
_VERSION = "qemu-nbd --version | sed -nE 's/^qemu-nbd ([0-9.]+).*/\\1/p'"
_OWN_VERSION = f"echo hypervisor_qemu=$({_VERSION})\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypervisor(Transport):
    """An image over another transport."""

    over: Transport
    image: Image
    cache: Cache
    aio: Aio
    bus: Bus
    locks: Locks
    clients: Clients
    qemu: Qemu

    @property
    def below(self) -> Transport:
        """The transport that holds the image."""
        return self.over

    @property
    def traits(self) -> Traits:
        """Those of the VM's disk."""
        return replace(
            self.over.traits,
            sectors_bytes=(512,),
            can_discard=False,
            offers_atomic_writes=False,
            gives_files=False,
            is_metadata_volatile=False,
            keeps_inodes=True,
            names_are_stable=False,
            repeats_requests=False,
            unflushed=self._unflushed,
            client_image=CLIENT_IMAGE if self.over.traits.is_local else self.qemu.image,
            target_scripts=None,
        )

    @property
    def _unflushed(self) -> frozenset[Sync]:
        """With `unsafe` a flushed write is in the hypervisor's page cache, with `noflush` on the NAS.

        A server of NFS has it stable there; a LUN and SMB have it in memory, but for sync=always.
        """
        if self.cache is Cache.UNSAFE:
            return frozenset(Sync)
        is_stable = self.over.traits.completed is CompletedWrite.IN_CLIENT
        is_kept = self.cache.forwards_flushes or is_stable
        return frozenset() if is_kept else frozenset({Sync.STANDARD})

    def make_volume_script(self, options: VolumeOptions) -> str:
        """As without an image, which the client makes."""
        return self.over.make_volume_script(options)

    def wait_for_volume_script(self) -> str:
        """As without an image."""
        return self.over.wait_for_volume_script()

    def publish_script(self, options: VolumeOptions) -> str:
        """As without an image."""
        return self.over.publish_script(options)

    def early_script(self, options: VolumeOptions) -> str:
        """As without an image."""
        return self.over.early_script(options)

    def late_script(self, options: VolumeOptions) -> str:
        """As without an image."""
        return self.over.late_script(options)

    def wait_until_idle_script(self) -> str:
        """As without an image."""
        return self.over.wait_until_idle_script()

    def let_go_script(self) -> str:
        """As without an image."""
        return self.over.let_go_script()

    def cache_scripts(self) -> Mapping[str, str]:
        """As without an image."""
        return self.over.cache_scripts()

    def attachment(self, *, nas_host: str) -> Attachment:
        """The VM's disk, over the image."""
        held = self.over.attachment(nas_host=nas_host)
        mount = None if held.mount is None else replace(held.mount, at=_STORE, chosen="")
        place = held.device if mount is None else f"{_STORE}/disk.{self.image.driver}"
        if self.image is Image.LVM:
            place = f"/dev/{_GROUP}/disk"
        is_written_through = self.cache.is_written_through
        # a login returns before the kernel has made the LUN's node
        waits = "" if held.device is None else f"\n{wait_for_path(held.device)}\n"
        return replace(
            held,
            mount=mount,
            attach_script=f"{held.attach_script}{waits}",
            image=VmImage(
                make_script=self._make_script(str(place), is_file=mount is not None),
                check=("sh", "-c", self._check_script(str(place))),
                open_script=self._open_script(str(place)),
                proofs=self._proofs(str(place)),
                is_stable_on_wire=_ON_WIRE.get(self.cache),
            ),
            detach_script=self._detach_script(held),
            advertised_script=f"echo $({_OWN_VERSION}{held.advertised_script})\n",
            device=_DEVICES[self.bus],
            has_write_cache=not is_written_through,
        )

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """Theory, by QEMU's table of cache modes (qemu-system(1)), and by the transport below.

        `unsafe` loses also where the client lives: some trials cut a second time, and end both.

        A server that forgot its clients lets them claim no lock. Every request of their files then
        fails (Linux fs/nfs/nfs4proc.c, `nfs4_copy_lock_stateid`). The VM's disk is dead, and loses
        nothing.
        """
        if self.cache is Cache.UNSAFE:
            return Guarantee.LOSES
        honest = Transport.guarantee(self, sync=sync, fate=fate)
        loses_locks = self.locks is Locks.LOCKED and self.clients is Clients.FORGOTTEN
        if honest is Guarantee.SAFE and loses_locks and fate is Fate.NAS_ONLY:
            return Guarantee.MAY_GO_OFFLINE
        return honest

    def _make_script(self, place: str, *, is_file: bool) -> str:
        """Shell: make the image, durable."""
        if self.image is Image.LVM:
            device = self.over.attachment(nas_host="").device
            return f"""set -eu
pvcreate -q {device}
vgcreate -q {_LVM} {_GROUP} {device}
lvcreate -q {_LVM} -W n -Z n -l 100%FREE -n disk {_GROUP}
vgchange -q {_LVM} -an {_GROUP}
"""
        if self.image is Image.RAW and not is_file:
            return ""
        size_mib = SIZE_MIB if is_file else SIZE_MIB - _METADATA_MIB
        with_all = "-o preallocation=metadata" if self.image is Image.QCOW2_PREALLOCATED else ""
        durable = f"sync -f {_STORE}" if is_file else f"blockdev --flushbufs {place}"
        return f"""set -eu
qemu-img create -q -f {self.image.driver} {with_all} {place} {size_mib}M
{durable}
"""

    def _activate(self) -> str:
        activate = f"vgchange -q {_LVM} -ay {_GROUP} > /dev/null\n"
        return activate if self.image is Image.LVM else ""

    def _check_script(self, place: str) -> str:
        """Shell: print the image's check as JSON, or the information of an image without one."""
        verb = "check" if self.image.driver == "qcow2" else "info"
        verb += " --force-share" if self.locks is Locks.LOCKED else ""
        return (
            f"{self._activate()}exec qemu-img {verb} --output=json -f {self.image.driver} {place}"
        )

    def _node(self, place: str) -> str:
        """The image as a node of QEMU's block layer, without its engine."""
        driver = "file" if place.startswith(_STORE) else "host_device"
        of_mode = f"cache.direct={_on(self.cache.is_direct)}"
        if not self.cache.forwards_flushes:
            of_mode += ",cache.no-flush=on"
        is_locked = self.locks is Locks.LOCKED
        return (
            f"driver={self.image.driver},{of_mode},file.driver={driver},file.filename={place},"
            f"file.locking={_on(is_locked)}"
        )

    def _open_script(self, place: str) -> str:
        """Shell: QEMU opens the image, and the kernel has its disk."""
        device, node = _DEVICES[self.bus], self._node(place)
        trace = f"--trace enable={_OF_IO_URING},file={_TRACE}"
        if self.bus is Bus.FLUSHES:
            opened = f"""\
qemu-storage-daemon --daemonize --pidfile {_PID} {trace} \\
    --blockdev {quote(f"node-name=disk,{node},file.aio={self.aio}")} \\
    --export type=vduse-blk,id=vm,node-name=disk,name=vm,writable=on"""
            return f"""set -eu
{self._activate()}modprobe -a vduse virtio_vdpa
{self._once_unlocked(opened)}
vdpa dev add name vm mgmtdev vduse
{wait_for_path(device)}
"""
        # QEMU's own word for a cache that is written through; the node has the rest
        mode = "--cache=writethrough" if self.cache.is_written_through else ""
        hides = f"echo 'write through' > /sys/block/{_name(device)}/queue/write_cache\n"
        size = f"$(cat /sys/block/{_name(device)}/size)"
        opened = f"""\
qemu-nbd --fork --pid-file={_PID} --connect={device} {trace} {mode} --aio={self.aio} \\
    --image-opts {quote(node)}"""
        return f"""set -eu
{self._activate()}modprobe nbd nbds_max=1 max_part=0
{self._once_unlocked(opened)}
for i in $(seq 400); do test "{size}" -gt 0 && break; sleep 0.05; done
test "{size}" -gt 0
{hides if self.cache.is_written_through else ""}"""

    def _once_unlocked(self, command: str) -> str:
        """Shell: run QEMU; wait for the lock of a hypervisor that died, until its lease has ended."""
        if self.locks is Locks.UNLOCKED:
            return command
        return f"""\
tries=0
until {command} 2> {_ERRORS}; do
    if ! grep -q ' lock' {_ERRORS} || test $((tries += 1)) -gt {_LOCKED_TRIES}; then
        cat {_ERRORS} >&2
        exit 1
    fi
    sleep 1
done"""

    def _detach_script(self, held: Attachment) -> str:
        """Shell: close the image, then let go of the store."""
        device = _DEVICES[self.bus]
        close = {
            Bus.FUA: f"qemu-nbd --disconnect {device} > /dev/null\n",
            Bus.FLUSHES: "vdpa dev del vm\nkill $pid\n",
        }[self.bus]
        close += "for i in $(seq 400); do test -e /proc/$pid || break; sleep 0.05; done\n"
        if self.image is Image.LVM:
            close += f"vgchange -q {_LVM} -an {_GROUP} > /dev/null\n"
        last = f"umount {_STORE}" if held.mount is not None else held.detach_script
        return f"set -eu\npid=$(cat {_PID})\n{close}{last}"

    def _proofs(self, place: str) -> dict[str, tuple[str, str]]:
        """QEMU's own file of the image, as its kernel has it (proc(5), fdinfo), and its engine.

        `luring_co_submit` is a request to io_uring (QEMU block/trace-events). The ring of native aio is
        mapped as `[aio]` (Linux fs/aio.c).
        """
        of_image = f"""\
pid=$(cat {_PID})
echo $(for fd in /proc/$pid/fd/*; do
    test "$(readlink -f $fd)" = "$(readlink -f {place})" || continue
    flags=$(sed -n 's/^flags:[[:space:]]*//p' /proc/$pid/fdinfo/$(basename $fd))
    echo $(((flags & {_O_DIRECT}) != 0))
done | sort -u)"""
        of_engine = f"""\
if grep -q {_OF_IO_URING} {_TRACE}; then echo {Aio.IO_URING}
elif grep -qF '[aio]' /proc/$(cat {_PID})/maps; then echo {Aio.NATIVE}
else echo {Aio.THREADS}
fi"""
        of_version = f"{_VERSION} | cut -d. -f-2"
        return {
            "QEMU of the hypervisor": (of_version, self.qemu.version),
            "O_DIRECT of the image": (of_image, str(int(self.cache.is_direct))),
            "engine of the image": (of_engine, self.aio),
        }


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"


def _name(device: str) -> str:
    return device.removeprefix("/dev/")


_AXES = {
    "over": "transport",
    "image": "image",
    "cache": "cache",
    "aio": "aio",
    "bus": "bus",
    "locks": "locks",
    "clients": "clients",
    "qemu": "hypervisor",
    "patience": "patience",
}
"""The fields of `Hypervisor`, and the axes that have their values."""


@kept
def _over(values: tuple[Any, ...]) -> Transport:
    fields = dict(zip(_AXES, values, strict=True))
    over: Transport = fields["over"]
    patience: Patience = fields.pop("patience")
    if fields["image"] is Image.NONE:
        return (over.cached(fields["cache"]) or over).waiting(patience)
    if patience is Patience.FOREVER and over.traits.gives_files:
        patience = Patience.DEFAULTS  # it mounts as the distribution ships it
    return Hypervisor(**fields | {"over": over.waiting(patience)})


def with_hypervisor(chosen: Chosen) -> Transport:
    """The whole chain of a cell, from the volume to the disk of the VM."""
    return _over(tuple(chosen[axis].value for axis in _AXES.values()))

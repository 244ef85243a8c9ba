"""The form of a transport: its whole chain, from the volume in the pool to the client's disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.volumes import (
    DIRECTORY,
    IMAGE,
    SIZE_MIB,
    VOLUME,
    VolumeKind,
    VolumeOptions,
    zvol,
)
from torture.choices.workloads.protocol import CLIENT_IMAGE
from torture.facts.axes.away import Patience
from torture.facts.axes.early import Early
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.files_on_wire import FileWire
from torture.oracles.verdict.guarantee import Guarantee
from torture.shell import wait_for_path, write_cache_of


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskSource:
    """The place of the bytes of a disk of QEMU (libvirt.org/formatdomain.html, Hard drives)."""

    kind: str = "network"
    """The `type` of libvirt's disk element: `file` or `network`."""
    attributes: Mapping[str, str]
    within: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The elements in its own, by tag, with their attributes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """A directory of the NAS that the guest mounts with its own kernel (mount(8))."""

    kind: str
    """The filesystem's type; its module has the same name. `none`: a directory of the guest's own."""
    source: str
    needed: str
    """The options without which the server cannot be reached."""
    chosen: str = ""
    """Further ones of the suite's."""
    added: Mapping[str, str] = field(default_factory=dict)
    """Those of the cell, which come last; `yes` is an option without a value."""
    at: str = MOUNT_POINT
    waits: frozenset[str] = frozenset()
    """The words by which its kernel shows how long it waits for the server."""

    @property
    def script(self) -> str:
        """Shell: mount it."""
        own = (name if value == "yes" else f"{name}={value}" for name, value in self.added.items())
        options = ",".join(filter(None, (self.needed, self.chosen, *own)))
        mount = f"mount -t {self.kind} -o {options} {self.source} {self.at}"
        module = f"modprobe {self.kind}; " if self.kind != "none" else ""
        return f"set -eu; {module}mkdir -p {self.at}; {mount}"

    @property
    def proofs(self) -> dict[str, tuple[str, str]]:
        """Shell that prints how the kernel shows each added option, and the line that it has to print."""
        proofs = {
            f"mount option {name}": self._proof_of(_shown_as(name, value))
            for name, value in self.added.items()
        }
        if self.waits and not self.added.keys() & _OF_PATIENCE:
            proofs[PATIENCE_PROOF] = self._proof_of(sorted(self.waits))
        return proofs

    def _proof_of(self, words: Sequence[str]) -> tuple[str, str]:
        sought = " ".join(f"-e {word}" for word in words)
        shown = f"findmnt --noheadings --output OPTIONS --mountpoint {self.at}"
        return f"echo $({shown} | tr , '\\n' | grep -xF {sought} | sort)", " ".join(words)


PATIENCE_PROOF = "patience of the client"
_OF_PATIENCE = frozenset({"hard", "soft", "softerr", "softreval", "timeo", "retrans"})
"""The options by which a cell may say itself how long its mount waits."""


def _shown_as(name: str, value: str) -> list[str]:
    """The words by which a kernel shows a mount's option; nfs(5): `actimeo` sets all four at once."""
    if name == "actimeo":
        return [f"ac{kind}{end}={value}" for kind in ("dir", "reg") for end in ("max", "min")]
    return [name if value == "yes" else f"{name}={value}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VmImage:
    """An image that a hypervisor opens on the guest's attached storage; all scripts run in the guest."""

    make_script: str
    """Shell, once, before it is opened for the first time."""
    check: tuple[str, ...]
    """The command that checks it while it is not open; prints JSON."""
    open_script: str
    """Shell: return once the VM's disk is there."""
    proofs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Shell that prints a line, and the line where the hypervisor opened it as the cell wants."""
    is_stable_on_wire: bool | None = None
    """Whether an NFS server calls each of its writes stable; None where that tells no mode."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """The client's view: a block device, or a directory that holds files directly.

    Either its QEMU opens `source`, or the guest mounts `mount`, or `attach_script` makes it appear
    there. `device` is the path of a block device there. Without one, the mount is the directory.
    """

    source: DiskSource | None = None
    mount: Mount | None = None
    attach_script: str = ""
    """Shell, run in the guest: return once the device is there."""
    image: VmImage | None = None
    """The image on the mount or device, where a hypervisor in the guest makes a disk of it."""
    detach_script: str = ""
    """Shell, run at the end in a guest that lives: afterwards nothing of it may reach the NAS."""
    patience: tuple[str, str] | None = None
    """Shell that prints how long the guest's kernel waits for the NAS, and the line of the cell. None
    for a mount, whose options show it, and where the guest's kernel attaches nothing."""
    is_written_through: bool = False
    """Whether the client's QEMU reports no write cache to its guest and flushes after each write
    itself."""
    kernel_words: str = ""
    """Further boot words for the client's kernel, where the client reaches the NAS by itself."""
    preload: str = ""
    """The library that the client's QEMU loads first: a source in `torture/machines/lab/native`."""
    wire: DiskWire | FileWire | None = None
    """The protocol between the client's own kernel and the NAS: the recorded answers are the NAS's
    promises."""
    advertised_script: str = ""
    """Shell, run in the guest: print on a line what the protocol promises, as `nvme_name=value` or
    `smb_name=value`, a word each."""
    device: str | None = None
    has_write_cache: bool = True
    """Whether the client's device must report write-back: a device without it is never flushed."""

    @property
    def proofs(self) -> dict[str, tuple[str, str]]:
        """Shell for the guest that prints a line, and the line where the cell's choices are in effect."""
        of_mount = {} if self.mount is None else self.mount.proofs
        of_mount |= {} if self.patience is None else {PATIENCE_PROOF: self.patience}
        return of_mount | ({} if self.image is None else dict(self.image.proofs))

    @property
    def guest_script(self) -> str:
        """Shell, run in the guest: return once the device, or the mounted directory, is there."""
        return self.attach_script if self.mount is None else self.mount.script


class CompletedWrite(StrEnum):
    """The place of a write that a client's disk or an NFS server has completed, before any flush."""

    IN_ZFS = "in zfs"
    """In a transaction group's memory; in the log with sync=always."""
    IN_PAGE_CACHE = "in page cache"
    """In the NAS's page cache, which ZFS has not seen yet."""
    IN_LOG = "in log"
    """In ZFS's log, unless that is disabled: the transport requests it with every write."""
    IN_CLIENT = "in client"
    """Still in the client as well, which keeps it until it is stable."""


_FORGOTTEN = {
    CompletedWrite.IN_ZFS: {Sync.STANDARD, Sync.DISABLED},
    CompletedWrite.IN_PAGE_CACHE: set(Sync),
    CompletedWrite.IN_LOG: {Sync.DISABLED},
    CompletedWrite.IN_CLIENT: {Sync.DISABLED},
}
"""The `sync` with which a NAS, after its reboot, lacks writes that its client relies on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """The facts of a transport that a trial needs before it runs any of its scripts."""

    ports: tuple[int, ...]
    """TCP ports of the NAS that its clients reach. The first one takes their requests."""
    volume: VolumeKind = VolumeKind.ZVOL
    sectors_bytes: tuple[int, ...] = (512,)
    """The possible sizes of logical sectors of its client's disk."""
    can_discard: bool = False
    """Whether its client's disk accepts discards where the cell asks for them."""
    offers_atomic_writes: bool = False
    """Whether its client's disk says that a crash does not tear a write of several sectors."""
    completed: CompletedWrite = CompletedWrite.IN_ZFS
    gives_files: bool = False
    """Whether it offers its client a directory with files, rather than a disk."""
    is_nfs: bool = False
    is_metadata_volatile: bool = False
    """Whether a client's fsync of a directory returns before creations, renames and removals in it
    are durable."""
    keeps_inodes: bool = True
    """Whether its client sees the modes and inode numbers of the NAS's files."""
    names_are_stable: bool = False
    """Whether a creation, rename or removal is durable once its call returns."""
    repeats_requests: bool = False
    """Whether a client sends a request again that was under way in the cut. A server that keeps no
    answers over a reboot may then do it a second time."""
    client_has_network: bool = False
    """Whether the client itself speaks to the NAS, rather than its QEMU."""
    unflushed: frozenset[Sync] = frozenset()
    """The `sync` with which a flush that its client's disk completed promises nothing: a hypervisor
    kept it."""
    keeps_clients: bool = False
    """Whether its server has a state of each client, which the client claims again after a reboot."""
    is_local: bool = False
    """Whether the client is the NAS itself."""
    moves_blocks: bool = False
    """Whether the NAS has another filesystem between its volume and the client's disk: a block of the
    disk then has another place in the volume."""
    nas_image: str = "nas"
    """The image of a NAS that has its server."""
    client_image: str = CLIENT_IMAGE
    """The image of a client that has its programs."""
    path_scripts: tuple[str, str] | None = None
    """Shell for a NAS with two addresses: lose the first one, and have it again. None: one path."""
    target_scripts: tuple[str, str] | None = None
    """Shell for a NAS that lives: end the target with its sessions, and have it again. None where a
    client would give up, or where it was not tried."""
    release_script: str = ""
    """Shell for a NAS without its link: end the target, so that the pool can be exported. Empty where
    it was not tried."""
    serves_until_let_go: bool = False
    """Whether `let_go_script` ends its server, so that the next state's files have to be published."""
    orders: frozenset[Early] = frozenset()
    """The wrong orders in which its NAS can publish."""
    waits_s: tuple[tuple[Patience, float], ...] = ()
    """How long its client waits for a NAS by each patience that it can have, in seconds, by source.
    None where the client's kernel does not attach it."""
    network_comes_last: bool = False
    """Whether the NAS must be unreachable until everything is published: a refused client gives up."""

    @property
    def tears_sectors(self) -> bool:
        """Whether a crash may leave part of a sector of a write in flight.

        A disk keeps its sectors whole. Files have none: ZFS's intent log splits a write at any
        eight bytes where a block of it is full (OpenZFS, zil.c, `zil_lwb_assign`).
        """
        return self.gives_files

    @property
    def takes_hypervisor(self) -> bool:
        """Whether the client may open an image on it: its own kernel attaches it, on one path."""
        has_more = self.path_scripts is not None or self.client_image != CLIENT_IMAGE
        return (self.client_has_network or self.is_local) and not has_more

    @property
    def needs_bridge(self) -> bool:
        """Whether it needs taps on a bridge: the user-mode network connects no client to the NAS."""
        return self.client_has_network or self.network_comes_last


class Transport(Protocol):
    """The path of a volume out of the NAS. Scripts are shell, run in the NAS, and have to succeed."""

    @property
    def traits(self) -> Traits:
        """Its traits, the same in every cell."""

    @property
    def below(self) -> Transport:
        """The transport without a hypervisor's image."""
        return self

    def cached(self, mode: str) -> Transport | None:
        """The same where the client's QEMU opens it with this cache mode; None where it was not tried."""
        del mode
        return None

    def waiting(self, patience: Patience) -> Transport:
        """The same with another patience of its client."""
        del patience
        return self

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the volume in the new pool."""

    def wait_for_volume_script(self) -> str:
        """Return once the volume of an imported pool can be published, fail in time."""

    def publish_script(self, options: VolumeOptions) -> str:
        """Offer the volume to clients."""

    def early_script(self, options: VolumeOptions) -> str:
        """Offer all that comes before the volume in the wrong order of `options`; by default nothing."""
        del options
        return ""

    def late_script(self, options: VolumeOptions) -> str:
        """Offer the volume after that; by default everything."""
        return self.publish_script(options)

    def wait_until_idle_script(self) -> str:
        """Return once no client is left that could still write, fail after 20 s.

        By default: once the NAS has read every byte that a killed client sent. A machine without
        power closes nothing: its connection stays, and its last bytes may lie in the socket (ss(8),
        Recv-Q). The deadline detects a server that hangs on them.
        """
        port = self.traits.ports[0]
        unread = (
            "ss --no-header --tcp --numeric state established "
            f"'( sport = :{port} )' | grep -v '^0 '"
        )
        return (
            f"for i in $(seq 400); do {unread} > /dev/null || exit 0; sleep 0.05; done; "
            f"echo 'requests of a killed client to port {port} are not read' >&2; exit 1"
        )

    def let_go_script(self) -> str:
        """Make the servers close all files, so that a NAS can unmount what it offers.

        By default they keep nothing open for a client that has unmounted.
        """
        return "true"

    def cache_scripts(self) -> Mapping[str, str]:
        """The proof of its caches: a name for each, and a script that prints its mode."""

    def proofs(self, options: VolumeOptions) -> Mapping[str, tuple[str, str]]:
        """The settings of its target: shell that prints a line, and the line where they are in effect."""
        del options
        return {}

    def attachment(self, *, nas_host: str) -> Attachment:
        """The device or directory that the client attaches, from the NAS at this address."""

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """The guarantee that theory gives it on disks and logs that honour flushes.

        It follows from the place of a completed write. OpenZFS `module/os/linux/zfs/zvol_os.c`,
        `zfs_vnops.c`: a write is synchronous only with FUA, O_SYNC, a flush after it or
        sync=always. `module/zfs/zil.c`: with sync=disabled `zil_commit` returns at once.

        With both machines dead only the intent log counts: every acknowledged write was flushed. A
        client that dies some seconds later received no acknowledgement meanwhile, as there was no
        NAS to send one.

        A client that lives repeats only the requests in flight. Completed and unflushed writes are
        lost. It flushes after the NAS's return, and never learns of the loss.

        A NAS that outlives its client loses nothing.
        """
        if fate is Fate.CLIENT_ONLY:
            return Guarantee.SAFE
        if fate is Fate.NAS_ONLY:
            is_forgotten = sync in _FORGOTTEN[self.traits.completed]
            return Guarantee.LOSES if is_forgotten else Guarantee.SAFE
        return Guarantee.ROLLS_BACK if sync is Sync.DISABLED else Guarantee.SAFE


SECOND_HOST = "10.77.0.12"
"""Beside the NAS's own address (`torture/machines/lab/network`)."""
_OF_CARD = "card=$(ip -o -4 addr show scope global | awk '{ print $2; exit }')"
ADD_PATH = f"""{_OF_CARD}
echo 1 > /proc/sys/net/ipv4/conf/$card/promote_secondaries
ip addr replace {SECOND_HOST}/24 dev $card
"""
"""Shell: else the second address would go with the first one (Documentation/networking/ip-sysctl.rst)."""
_PATH_FILE = "/run/first-path"
_LOSE_PATH = f"""set -eu
{_OF_CARD}
ip -o -4 addr show dev $card scope global | awk '{{ print $4; exit }}' > {_PATH_FILE}
ip addr del "$(cat {_PATH_FILE})" dev $card
"""
_REGAIN_PATH = f"""set -eu
{_OF_CARD}
ip addr add "$(cat {_PATH_FILE})" dev $card
"""

PATH_SCRIPTS = (_LOSE_PATH, _REGAIN_PATH)
"""As `Traits.path_scripts`."""


_WAIT_FOR_MOUNT = (
    f"for i in $(seq 400); do mountpoint -q {DIRECTORY} && break; sleep 0.05; done; "
    f"mountpoint -q {DIRECTORY} || {{ echo '{DIRECTORY} is not mounted after 20 s' >&2; exit 1; }}"
)
"""An earlier export would offer an empty directory of the NAS's own root, without an error."""


class OfZvol(Transport, Protocol):
    """A transport of a zvol: a block device of the pool (zvol in zfs-create(8))."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the zvol, sparse, wait for its device, and insist on its write cache."""
        return "\n".join(
            (
                "set -eu",
                f"zfs create -s -V {SIZE_MIB}M {options.words} {VOLUME}",
                wait_for_path(zvol.DEVICE),
                f'test "$({write_cache_of(zvol.DEVICE)})" = "write back"',
            )
        )

    def wait_for_volume_script(self) -> str:
        """Return once its device is there; fail after 20 s."""
        return wait_for_path(zvol.DEVICE)

    def cache_scripts(self) -> Mapping[str, str]:
        """The zvol's cache."""
        return {"zvol": write_cache_of(zvol.DEVICE)}


class OfDataset(Transport, Protocol):
    """A transport of a dataset and its files."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the dataset, mounted."""
        return f"set -eu; zfs create {options.words} {VOLUME}; {_WAIT_FOR_MOUNT}"

    def wait_for_volume_script(self) -> str:
        """Its mount."""
        return _WAIT_FOR_MOUNT

    def cache_scripts(self) -> Mapping[str, str]:
        """None on the NAS: where the client has a disk, that disk shows it."""
        return {}


class OfImage(OfDataset, Protocol):
    """A transport of a sparse image in a dataset."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the image in a dataset."""
        made = OfDataset.make_volume_script(self, options)
        return f"{made}; truncate -s {SIZE_MIB}M {IMAGE}; sync -f {IMAGE}"

    def wait_for_volume_script(self) -> str:
        """Wait for the image: a target might make an empty one in its place (O_CREAT, as LIO does)."""
        return f"{_WAIT_FOR_MOUNT}; test -e {IMAGE} || {{ echo '{IMAGE} is gone' >&2; exit 1; }}"


class OfImageOver(OfZvol, Protocol):
    """A transport of a sparse image in another filesystem, which lies on a zvol of the pool."""

    kind: str
    """The type of that filesystem."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the zvol, the filesystem and the image."""
        made = OfZvol.make_volume_script(self, options)
        image = f"truncate -s {SIZE_MIB}M {IMAGE}; sync -f {IMAGE}"
        return f"{made}; mkfs.{self.kind} -q {zvol.DEVICE}; {self._mount_script}; {image}"

    def wait_for_volume_script(self) -> str:
        """Mount the filesystem, which replays its journal, and wait for the image."""
        mounted = f"mountpoint -q {DIRECTORY} || {{ {self._mount_script}; }}"
        return f"set -e; {OfZvol.wait_for_volume_script(self)}; {mounted}; test -e {IMAGE}"

    @property
    def _mount_script(self) -> str:
        return f"mkdir -p {DIRECTORY}; mount -t {self.kind} {zvol.DEVICE} {DIRECTORY}"

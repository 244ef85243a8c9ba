"""What a transport has to say: its whole chain, from the volume in the pool to the client's disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from xml.etree import ElementTree as ET

from torture.choices.volumes import VolumeKind, VolumeOptions
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.files_on_wire import FileWire
from torture.oracles.verdict.guarantee import Guarantee


class DiskSource(Protocol):
    """Where the bytes of a disk of QEMU are."""

    @property
    def kind(self) -> str:
        """The `type` of libvirt's disk element: `file` or `network`."""

    def element(self) -> ET.Element:
        """Its `source` element (libvirt.org/formatdomain.html, Hard drives)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """What the client gets: a block device, or a directory in which files lie directly.

    Either its QEMU opens `source`, or `attach_script` makes it appear in the guest. `device` is
    where a block device appears there; without one, `attach_script` mounts the directory itself.
    """

    source: DiskSource | None = None
    attach_script: str = ""
    """Shell, run in the guest: return once the device, or what is mounted, is there."""
    detach_script: str = ""
    """Shell, run in a guest that lives and is done with it: nothing of it may reach the NAS any more."""
    is_written_through: bool = False
    """Whether the client's QEMU tells its guest of no write cache and flushes after each write itself."""
    kernel_words: str = ""
    """What the client's kernel is told as it boots, where the client reaches the NAS by itself."""
    preload: str = ""
    """What the client's QEMU loads before other libraries: a source in `torture/machines/lab/native`."""
    wire: DiskWire | FileWire | None = None
    """How the client's own kernel speaks to the NAS: the answers that pass are the NAS's promises."""
    device: str | None = None
    has_write_cache: bool = True
    """Whether the client's device must say write-back: one that does not is never flushed."""


class CompletedWrite(StrEnum):
    """Where a write is that a client's disk, or an NFS server, has completed and nobody flushed."""

    IN_ZFS = "in zfs"
    """In a transaction group's memory; in the log with sync=always."""
    IN_PAGE_CACHE = "in page cache"
    """In the NAS's page cache, of which ZFS does not know yet."""
    IN_LOG = "in log"
    """In ZFS's log, unless that is disabled: the transport asks for it with every write."""
    IN_CLIENT = "in client"
    """Still in the client as well, which keeps it until it is stable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What a trial has to know of a transport before it asks it for anything."""

    ports: tuple[int, ...]
    """TCP ports of the NAS that its clients reach."""
    volume: VolumeKind = VolumeKind.ZVOL
    sectors_bytes: tuple[int, ...] = (512,)
    """The sizes of logical sectors that its client's disk can have."""
    can_discard: bool = False
    """Whether its client's disk takes discards where the cell says so."""
    completed: CompletedWrite = CompletedWrite.IN_ZFS
    gives_files: bool = False
    """Whether its client finds a directory with files, rather than a disk."""
    is_nfs: bool = False
    is_metadata_volatile: bool = False
    """Whether a client's fsync of a directory returns before what was made, renamed or removed in it is
    durable."""
    keeps_inodes: bool = True
    """Whether its client sees modes and the numbers of inodes as the NAS's files have them."""
    names_are_stable: bool = False
    """Whether a name that was made, renamed or removed is durable once the call that did it returns."""
    client_has_network: bool = False
    """Whether the client itself speaks to the NAS, rather than its QEMU."""
    network_comes_last: bool = False
    """Whether the NAS must not be reachable before everything is published: a client that is refused
    gives up."""

    @property
    def tears_sectors(self) -> bool:
        """Whether of a write that was under way a crash may leave a part of a sector.

        A disk keeps its sectors whole. Files have none: ZFS's intent log splits a write at any eight
        bytes where a block of it is full (OpenZFS, zil.c, `zil_lwb_assign`).
        """
        return self.gives_files

    @property
    def needs_bridge(self) -> bool:
        """Whether the user-mode network will not do: it has no wire to a client, and always answers."""
        return self.client_has_network or self.network_comes_last


class Transport(Protocol):
    """How a volume leaves the NAS. Scripts are shell that has to succeed; they run in the NAS."""

    @property
    def traits(self) -> Traits:
        """What it is, whatever the cell."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the volume in the new pool."""

    def wait_for_volume_script(self) -> str:
        """Return once the volume of an imported pool can be published, fail in time."""

    def publish_script(self, options: VolumeOptions) -> str:
        """Offer the volume to clients."""

    def wait_until_idle_script(self) -> str:
        """Return once no client is left that could still write, fail in time."""

    def cache_scripts(self) -> Mapping[str, str]:
        """What proves its caches: a name for each, and a script that prints its mode."""

    def attachment(self, *, nas_host: str) -> Attachment:
        """What the client attaches, the NAS being at this address."""

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """What theory says it holds on disks and logs that honour flushes."""

"""Matrices: which cells a run covers, as sweeps that choices join by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Sweep(StrEnum):
    """A grid of cells: every combination of the choices that join it, on every axis.

    A sweep is empty if no choice of some axis joins it. A new choice joins no sweep by default.
    """

    QUESTION = "question"
    """Every `sync` and fate, with the most common choice on every other axis."""
    DATASTORES = "datastores"
    """NFS as hypervisors and their guests use it, with `sync=standard`."""
    USUAL = "usual"
    """The most common cells: without a log device and with a good one, two filesystems."""
    LOG_DEVICES = "log devices"
    """Every log device, with sync=always, where its loss shows."""
    TRANSPORTS = "transports"
    """The transports that theory distinguishes, with `sync=standard`."""
    TRANSPORTS_BEHIND_ALWAYS = "transports behind always"
    """The transports that lose with `sync=standard`, here with sync=always: does it help?"""
    LOG_DEVICES_AND_FILESYSTEMS = "log devices and filesystems"
    LAYOUTS = "layouts"
    DATA_DISKS = "data disks"
    LOG_SPEEDS = "log speeds"
    """Every class of log device; cells without a log device have no class."""
    EVERY_TRANSPORT = "every transport"
    """Every transport, with every `sync` and fate."""
    BOOT = "boot"
    """A client whose root is on the NAS's disk, with every `sync` and fate."""
    BOOT_FILESYSTEMS = "boot filesystems"
    """The same on each filesystem, with `sync=standard`."""
    LIBNFS_DIRECTSYNC = "libnfs directsync"
    """An image over libnfs, with every `sync` and fate: QEMU flushes after each write."""
    HYPERVISOR_ON_FILES = "hypervisor on files"
    """Images on a kernel's NFS mount, as Proxmox VE has them: raw and qcow2, two cache modes."""
    HYPERVISOR_ON_LUNS = "hypervisor on luns"
    """A LUN of the kernel's initiator, with and without LVM."""
    HYPERVISOR_OF_LIBVIRT = "hypervisor of libvirt"
    """Images on an NFS mount with libvirt's defaults: writeback, threads, locked."""
    HYPERVISOR_WITHOUT_FLUSHES = "hypervisor without flushes"
    """A hypervisor that keeps the VM's flushes, while both machines die."""
    OUTAGES = "outages"
    """Other ends of the NAS's service than a loss of power, and a client that dies alone."""
    OUTAGES_OF_IMAGES = "outages of images"
    """The same under a hypervisor's image, on a kernel's NFS mount."""
    OUTAGES_FOR_MINUTES = "outages for minutes"
    """A NAS that is away for three minutes, with every patience of its client."""
    OUTAGES_FOR_MINUTES_OF_IMAGES = "outages for minutes of images"
    OUTAGES_OUT_OF_ORDER = "outages out of order"
    """A NAS that answers before its volume is there."""
    OUTAGES_WITH_TAKEOVER = "outages with takeover"
    """Another node takes over."""
    ADMINISTRATION = "administration"
    """Operations on any pool, while both machines die; one cell per operation, as in the next three."""
    ADMINISTRATION_OF_MIRRORS = "administration of mirrors"
    ADMINISTRATION_OF_RAIDZ = "administration of raidz"
    ADMINISTRATION_OF_LOGS = "administration of logs"


EVERY_SWEEP = frozenset(Sweep)
HYPERVISOR_SWEEPS = frozenset(sweep for sweep in Sweep if sweep.name.startswith("HYPERVISOR_"))
OUTAGE_SWEEPS = frozenset(sweep for sweep in Sweep if sweep.name.startswith("OUTAGES"))
BOOT_SWEEPS = frozenset({Sweep.BOOT, Sweep.BOOT_FILESYSTEMS})
ADMINISTRATION_SWEEPS = frozenset(
    {
        Sweep.ADMINISTRATION,
        Sweep.ADMINISTRATION_OF_MIRRORS,
        Sweep.ADMINISTRATION_OF_RAIDZ,
        Sweep.ADMINISTRATION_OF_LOGS,
    }
)


class Matrix(StrEnum):
    """Which cells a run covers. `full` contains `default`, and `default` contains `quick`."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"
    BOOT = "boot"
    """Only whether a client boots again from the NAS's disk."""
    HYPERVISOR = "hypervisor"
    """Only disks of VMs whose hypervisor mounts the NAS's export, or logs in to its LUN."""
    OUTAGES = "outages"
    """Only what ends the NAS's service or the client: power, a panic, a reset, a reboot, a takeover.
    Some are long, or end in a wrong order."""
    ADMINISTRATION = "administration"
    """Only the operations of `torture.choices.administration`."""


SWEEPS: Mapping[Matrix, tuple[Sweep, ...]] = {
    Matrix.QUICK: (Sweep.QUESTION, Sweep.DATASTORES),
    Matrix.DEFAULT: (
        Sweep.QUESTION,
        Sweep.DATASTORES,
        Sweep.USUAL,
        Sweep.LOG_DEVICES,
        Sweep.TRANSPORTS,
        Sweep.TRANSPORTS_BEHIND_ALWAYS,
    ),
    Matrix.FULL: tuple(
        sweep
        for sweep in Sweep
        if sweep not in BOOT_SWEEPS | ADMINISTRATION_SWEEPS | HYPERVISOR_SWEEPS | OUTAGE_SWEEPS
    ),
    Matrix.BOOT: tuple(sweep for sweep in Sweep if sweep in BOOT_SWEEPS),
    Matrix.HYPERVISOR: tuple(sweep for sweep in Sweep if sweep in HYPERVISOR_SWEEPS),
    Matrix.OUTAGES: tuple(sweep for sweep in Sweep if sweep in OUTAGE_SWEEPS),
    Matrix.ADMINISTRATION: tuple(sweep for sweep in Sweep if sweep in ADMINISTRATION_SWEEPS),
}

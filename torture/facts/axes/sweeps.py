"""Matrices: how much of the cells' space a run covers, as sweeps that choices join by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Sweep(StrEnum):
    """A grid of cells: every combination of the choices that join it, on every axis.

    A sweep that no choice of an axis joins is empty; a new choice joins none unless it says so.
    """

    QUESTION = "question"
    """Every `sync` and fate, all else as most people have it."""
    DATASTORES = "datastores"
    """NFS as hypervisors and their guests have it, with `sync` as it comes."""
    USUAL = "usual"
    """Where most users are: without a log device and with a good one, two filesystems."""
    LOG_DEVICES = "log devices"
    """Every log device, where its loss shows: behind sync=always."""
    ROADS = "roads"
    """The roads to the disk that theory tells apart, with `sync` as it comes."""
    ROADS_BEHIND_ALWAYS = "roads behind always"
    """Those that lose then, behind sync=always: whether it helps."""
    LOG_DEVICES_AND_FILESYSTEMS = "log devices and filesystems"
    LAYOUTS = "layouts"
    DATA_DISKS = "data disks"
    LOG_SPEEDS = "log speeds"
    """Every class of log device; without a log device there is none."""
    EVERY_ROAD = "every road"
    """Every transport, with every `sync` and fate."""
    BOOT = "boot"
    """A client whose root is on the NAS's disk, with every `sync` and fate."""
    BOOT_FILESYSTEMS = "boot filesystems"
    """The same on each filesystem, with `sync` as it comes."""
    ADMINISTRATION = "administration"
    """What is done to any pool, while both machines die; one cell an operation, as the next three."""
    ADMINISTRATION_OF_MIRRORS = "administration of mirrors"
    ADMINISTRATION_OF_RAIDZ = "administration of raidz"
    ADMINISTRATION_OF_LOGS = "administration of logs"


EVERY_SWEEP = frozenset(Sweep)
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
    """How much of the cells' space a run covers; see `GROWING`."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"
    BOOT = "boot"
    """Whether a client boots again from the NAS's disk, and nothing else."""
    ADMINISTRATION = "administration"
    """Every operation of `torture.choices.administration`, and nothing else."""


GROWING = (Matrix.QUICK, Matrix.DEFAULT, Matrix.FULL)
"""Each begins with the one before; every other matrix is about a question of its own."""

SWEEPS: Mapping[Matrix, tuple[Sweep, ...]] = {
    Matrix.QUICK: (Sweep.QUESTION, Sweep.DATASTORES),
    Matrix.DEFAULT: (
        Sweep.QUESTION,
        Sweep.DATASTORES,
        Sweep.USUAL,
        Sweep.LOG_DEVICES,
        Sweep.ROADS,
        Sweep.ROADS_BEHIND_ALWAYS,
    ),
    Matrix.FULL: tuple(
        sweep for sweep in Sweep if sweep not in BOOT_SWEEPS | ADMINISTRATION_SWEEPS
    ),
    Matrix.BOOT: tuple(sweep for sweep in Sweep if sweep in BOOT_SWEEPS),
    Matrix.ADMINISTRATION: tuple(sweep for sweep in Sweep if sweep in ADMINISTRATION_SWEEPS),
}

"""The axes: what is varied between cells. One `StrEnum` each; the value is how a cell's name says it.

No value is on two axes, so a part of a name tells its axis, and each is a pytest mark.
"""

from __future__ import annotations

from enum import StrEnum


class Transport(StrEnum):
    """How the client reaches the NAS."""

    ISCSI = "iscsi"
    """LIO iblock on a zvol; the client's QEMU is the initiator, through libiscsi."""


class Sync(StrEnum):
    """The zvol's `sync` property (zfsprops(7))."""

    STANDARD = "standard"
    ALWAYS = "always"
    DISABLED = "disabled"


class Slog(StrEnum):
    """The pool's log devices, as users buy and lose them."""

    NONE = "noslog"
    PLP = "plp"
    """Power-loss-protected: keeps whatever it completed."""
    VOLATILE = "volatile"
    """Honours flush; loses what no flush covered."""
    LYING = "lying"
    """Acknowledges flushes it has not done."""
    MIRROR = "mirror"
    """Two log devices, one of them gone after the cut."""
    LOST = "lost"
    """The only log device is gone after the cut."""


class SlogClass(StrEnum):
    """How fast a log device is."""

    HDD = "hdd"
    SATA_SSD = "sata"
    SAS_SSD = "sas"
    NVME = "nvme"
    OPTANE = "optane"
    NVDIMM = "nvdimm"


class Layout(StrEnum):
    """The pool's data disks."""

    SINGLE = "single"
    MIRRORED = "mirrored"
    """A two-way mirror."""
    RAIDZ1 = "raidz1"
    """Three disks."""


class Disks(StrEnum):
    """What the data disks keep when their power is cut."""

    PLP = "plpdisks"
    """Power-loss-protected: whatever they completed."""
    VOLATILE = "volatiledisks"
    """What a flush covered, like most disks."""
    LYING = "lyingdisks"
    """Not even that: they acknowledge flushes they have not done."""


class Filesystem(StrEnum):
    """What the client keeps on its disk."""

    BTRFS = "btrfs"
    EXT4 = "ext4"
    XFS = "xfs"
    RAW = "raw"
    """No filesystem: the same load on the bare disk, to tell which layer lost the data."""


class Fate(StrEnum):
    """What happens to the client at the cut."""

    BOTH_DIE = "bothdie"
    NAS_ONLY = "nasonly"
    """The client lives on, waits, reconnects and goes on writing."""

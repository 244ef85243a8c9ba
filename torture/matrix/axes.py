"""The axes: what is varied between cells. One `StrEnum` each; the value is how a cell's name says it."""

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
    """The pool's log devices."""

    NONE = "noslog"
    SINGLE = "slog"


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

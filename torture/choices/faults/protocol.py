"""The form of a fault: its place, and the predictions made before its first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.recording.crash_state import DiskState
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.remains import Patch, Remains

Spoiler = Callable[[Remains], tuple[Patch, ...]]
"""A write over the first data disk, after the cut and before the NAS comes back.

Raises `HarnessError` where the disk holds no suitable block.
"""


class Layer(StrEnum):
    """The part of the chain that is at fault."""

    DISK = "disk"
    ZFS = "ZFS"
    NAS = "NAS"
    CLIENT = "client"
    DATA = "data"
    """The recovered data are changed afterwards: this tests the checks themselves."""


class Sight(StrEnum):
    """The check that sees a fault first."""

    AUDIT = "audit"
    """The audit of the recording, in each trial."""
    POOL = "pool"
    FILESYSTEM = "filesystem"
    DATA = "data"
    OUTAGE = "outage"
    """An operation was acknowledged while no NAS could answer, and nothing vouches for it."""
    REPLAY = "replay"
    """The walk over the recording's crash states, where there is one."""
    SETTINGS = "settings"
    """A setting of the cell was found otherwise under the load, or at the end of the trial."""
    EMPTY = "empty"
    """The report says that the load had stalled, and that the cut could have lost nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A fault and its hooks. The hooks are shell scripts, which have to succeed in their machine."""

    name: str
    layer: Layer
    words: str
    cell: str = "iscsi-always-noslog-ext4-bothdie"
    """The cell in which it is planted: one that is sound without the fault."""
    seen_by: Sight | None
    """Predicted. None for a disturbance, which looks bad and in which no check may see anything."""
    cuts: int
    """Predicted: after so many cuts it is seen with 95 % confidence; 0 for a disturbance."""
    bound_to: frozenset[str] = frozenset()
    """Axes of which its hooks know one choice only: elsewhere they would fail, or do something
    else."""
    amounts_to: Mapping[str, str] = field(default_factory=dict)
    """The choices, by axis, that it imitates. It is a fault where theory guarantees less of them."""
    zfs: str = ""
    """The version of the NAS, with a bug planted in it (`vmimages/zfs/planted`). Empty: the run's."""
    on_disks: DiskFault | None = None
    """How the NAS's data disks misbehave."""
    in_nas: str = ""
    """Run in the NAS at the end of the set-up, before the load."""
    in_client: str = ""
    """Run in the client at the same time."""
    under_load: str = ""
    """Run in the client once each load has an acknowledgement."""
    aim: str = ""
    """The aim of its cuts (`torture.trials.plan.cut_plan.Aim`), where few other cuts would meet it."""
    load_ms: int | None = None
    """How long its load lasts; None: as long as in any trial."""
    nas_stands_still_ms: int = 0
    """How long the NAS's emulator is stopped: once the load runs, before the wait for the cut."""
    survivors: Mapping[str, DiskState] = field(default_factory=dict)
    """The crash state of these disks, by serial, instead of the seed's draw. They are not gone
    then."""
    spoiler: Spoiler | None = None
    """Run on the disk before the NAS comes back."""
    before_import: str = ""
    """Run in the NAS after its reboot, before the import."""
    after_return: str = ""
    """Run in the returned NAS once it has published its volume."""
    import_patience_s: float | None = None
    """How long its imports may take; None: as long as in any trial."""
    before_mount: str = ""
    """Run in the checking client before it mounts the filesystem, which lies on `{device}`."""
    before_read_back: str = ""
    """Run in the checking client once it has mounted the filesystem; a bare disk is `{device}`."""

    @property
    def is_harmless(self) -> bool:
        """Whether it is a disturbance."""
        return self.seen_by is None

"""What a fault is: where it is planted, and what is predicted of it before it was ever run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.recording.crash_state import DiskState
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.remains import Patch, Remains

Spoiler = Callable[[Remains], tuple[Patch, ...]]
"""What is written over the first data disk that the cut left.

Raises `HarnessError` where the disk holds nothing that it could be about.
"""


class Layer(StrEnum):
    """Which part of the chain is at fault."""

    DISK = "disk"
    ZFS = "ZFS"
    NAS = "NAS"
    CLIENT = "client"
    DATA = "data"
    """What was recovered was changed afterwards: the checks themselves are asked."""


class Sight(StrEnum):
    """Which check sees a fault first."""

    AUDIT = "audit"
    """The log, in each trial."""
    POOL = "pool"
    FILESYSTEM = "filesystem"
    DATA = "data"
    EMPTY = "empty"
    """The cut is reported as one that could have lost nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A fault, and its hooks; scripts are shell, run in a machine where they have to succeed."""

    name: str
    layer: Layer
    words: str
    cell: str
    """In which it is planted: one that is sound without it."""
    seen_by: Sight | None
    """Predicted; None of a disturbance, which looks bad and of which nothing may be seen."""
    cuts: int
    """Predicted: after so many cuts it is seen with 95 % confidence; 0 of a disturbance."""
    bound_to: frozenset[str] = frozenset()
    """Axes that its hooks know one choice of: elsewhere they would fail, or do something else."""
    amounts_to: Mapping[str, str] = field(default_factory=dict)
    """Choices, by axis, that it silently makes: it is a fault where theory promises less of them."""
    zfs: str = ""
    """The version of the NAS, with a bug planted in it (`vmimages/zfs/planted`); empty: the run's."""
    on_disks: DiskFault | None = None
    """What the NAS's data disks do."""
    in_nas: str = ""
    """From the end of the set-up on, before the load."""
    in_client: str = ""
    """The same in the client."""
    aim: str = ""
    """What its cuts take aim at (`torture.trials.plan.cut_plan.Aim`), where few others would meet it."""
    load_ms: int | None = None
    """How long its load lasts; None: as long as any trial's."""
    nas_stands_still_ms: int = 0
    """How long the NAS's emulator is stopped once the load runs, before the cut is waited for."""
    survivors: Mapping[str, DiskState] = field(default_factory=dict)
    """What the cut leaves of these disks, by serial, whatever the seed draws; they are not gone then."""
    spoiler: Spoiler | None = None
    """Before the NAS comes back."""
    before_import: str = ""
    """In the NAS that comes back."""
    import_patience_s: float | None = None
    """How long its imports may take; None: as long as any trial's."""
    before_mount: str = ""
    """In the client that checks, before it mounts the filesystem; `{device}` is what it lies on."""
    before_read_back: str = ""
    """In the client that checks, once it has mounted the filesystem."""

    @property
    def is_harmless(self) -> bool:
        """Whether it is a disturbance."""
        return self.seen_by is None

"""A disk on the shelf: its size, its persistence across a power cut, and its speed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from torture.facts.recording.intent_log import Role


class Persistence(StrEnum):
    """Which writes a disk keeps when its power is cut."""

    PLP = "plp"
    """Power-loss-protected: all completed writes."""
    VOLATILE = "volatile"
    """All writes that a flush covered, and any part of the others."""
    LYING = "lying"
    """Not even all covered ones: it acknowledged flushes shortly before the cut without doing them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """How slow a disk is; by default not at all.

    A request takes at least its latency, and its bytes at `mib_per_s` (0: no limit) one after another.
    torture/machines/shelf/native/README.md says how the shelf's plugin implements it.
    """

    read_us: float = 0
    seek_us: float = 0
    """Of a read that does not begin where the last one ended; one seek at a time."""
    write_us: float = 0
    flush_us: float = 0
    mib_per_s: int = 0
    serial: bool = False
    """One request at a time, like a disk's arm."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskFault:
    """A fault in every n-th flush or write of a disk; 0: none."""

    drop_flush_every: int = 0
    lose_write_every: int = 0
    role: Role | None = None
    """Only writes of this role are affected; None: all."""
    flush_early_ms: int = 0
    """How long a flush is acknowledged before it is done."""
    slow_write_every: int = 0
    slow_write_ms: int = 0
    """How much longer such a write takes; others overtake it, and nothing is lost by it."""

    def as_json(self) -> dict[str, Any]:
        """As `disks[].fault` of the plugin's configuration."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfDisk:
    """One disk on the shelf; its file on the host is sparse."""

    serial: str
    """Also the name of its export, and the end of its name in the NAS's /dev/disk/by-id."""
    size_mib: int
    sector_bytes: int = 512
    """Logical sector size, 512 or 4096."""
    physical_sector_bytes: int = 512
    """The unit of torn writes, which the guest sees as well; `ValueError` below the logical sector."""
    persistence: Persistence = Persistence.PLP
    profile: Profile = Profile()
    fault: DiskFault | None = None
    """A fault planted on purpose."""

    def __post_init__(self) -> None:
        if self.physical_sector_bytes < self.sector_bytes:
            raise ValueError(f"{self.serial}: its physical sector is smaller than its logical one")

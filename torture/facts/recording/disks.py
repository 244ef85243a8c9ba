"""A disk on the shelf: its size, its persistence across a power cut, and its writes' fate at one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from torture.facts.evidence.cut_document import GONE, DiskAtCut
from torture.facts.recording.crash_state import CrashState, DiskState, Policy
from torture.facts.recording.events import Recording
from torture.facts.recording.model import tally, uncovered, writes_until
from torture.facts.recording.roles import Role


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


def keep_all(recording: Path, *, cut: int, disks: Sequence[ShelfDisk]) -> CrashState:
    """The crash state that loses no write: the disks as they were at an event."""
    return CrashState(
        recording=recording,
        cut=cut,
        seed=0,
        disks={disk.serial: DiskState(policy=Policy.ALL) for disk in disks},
    )


def count_crash_states(recording: Recording, *, cut: int, disks: Sequence[str]) -> int:
    """The number of states in which the cut can leave these disks; the other disks are gone.

    Each uncovered write, in flight or completed, survives as a whole or not at all: torn writes are
    left out. Different states may have equal content. Raises `ValueError` for an unknown cut or disk.
    """
    places = (recording.place_of(name) for name in disks)
    writes = (writes_until(recording.events, disk=place, cut=cut) for place in places)
    return 1 << sum(len(uncovered(of_disk)) for of_disk in writes)


def account(
    recording: Recording, state: CrashState, disks: Sequence[ShelfDisk]
) -> dict[str, DiskAtCut]:
    """For `cut.json`: each disk's persistence and policy, its writes, and the uncovered ones' fate."""
    return {disk.serial: _account_disk(recording, state, disk) for disk in disks}


def _account_disk(recording: Recording, state: CrashState, disk: ShelfDisk) -> DiskAtCut:
    chosen = state.disks.get(disk.serial)
    number = recording.place_of(disk.serial)
    counts = tally(
        recording.events,
        disk=number,
        sector=disk.physical_sector_bytes,
        view=chosen or DiskState(policy=Policy.FLUSHED),
        cut=state.cut,
        seed=state.seed,
    )
    policy = GONE if chosen is None else chosen.policy
    return DiskAtCut(persistence=disk.persistence, policy=policy, **asdict(counts))

"""The fate of each disk's writes at a cut, counted from the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from torture.facts.evidence.cut_document import GONE, DiskAtCut
from torture.facts.recording.crash_state import CrashState, DiskState, Policy
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording
from torture.facts.recording.model import tally, uncovered, writes_until


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

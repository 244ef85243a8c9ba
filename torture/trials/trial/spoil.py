"""A fault on a disk after the cut: the shelf writes it before the NAS comes back."""

from __future__ import annotations

from pathlib import Path

from torture.choices.faults.protocol import Spoiler
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import load_recording
from torture.facts.recording.remains import Remains
from torture.machines.shelf.server import Shelf


def spoil(shelf: Shelf, spoiler: Spoiler, *, view: Path, disk: ShelfDisk) -> None:
    """Make a fault damage a disk of a view that the shelf serves.

    It is a write like the NAS's own: in the recording of the disks' next life, not in the view.
    Raises `HarnessError` when the recording holds no data that the fault could damage.
    """
    state = read_crash_state(view)
    recording = load_recording(state.recording)
    remains = Remains(recording=recording, disk=recording.place_of(disk.serial), cut=state.cut)
    for patch in spoiler(remains):
        shelf.overwrite(disk, patch)

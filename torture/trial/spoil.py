"""A fault in what the cut left: which byte of which disk it is about."""

from __future__ import annotations

from pathlib import Path

from torture.errors import HarnessError
from torture.nas import pool
from torture.recording.crash_state import read_crash_state
from torture.recording.disks import ShelfDisk
from torture.recording.events import Kind, Recording, load_recording
from torture.recording.model import writes_until
from torture.recording.roles import Role, role_of

_INTO_THE_BLOCK = 1000


def spoiling_script(script: str, *, view: Path, disk: ShelfDisk) -> str:
    """A fault's script, its places filled in: a byte of the last block of data that was committed.

    Raises `HarnessError` when the recording holds no such block.
    """
    if "{offset}" not in script:
        return script
    state = read_crash_state(view)
    offset = _committed_block(load_recording(state.recording), disk=disk, cut=state.cut)
    return script.format(device=pool.path_of(disk), offset=offset + _INTO_THE_BLOCK)


def _committed_block(recording: Recording, *, disk: ShelfDisk, cut: int) -> int:
    """Where on a disk the data was written last that the last covered uberblock leads to."""
    last = committed = None
    writes = writes_until(recording.events, disk=recording.place_of(disk.serial), cut=cut)
    for write in writes:
        if write.kind is not Kind.WRITE_SUBMIT or not write.covered:
            continue
        role = role_of(recording.payload(recording.events[write.submission]))
        if role is Role.DATA:
            last = write.offset
        elif role is Role.UBERBLOCK and last is not None:
            committed = last
    if committed is None:
        raise HarnessError(f"no block of data was committed on {disk.serial} before the cut")
    return committed

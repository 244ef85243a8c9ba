"""A shelf whose disks differ from the planned crash state is found out before a NAS reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.shelf.requests import payload
from torture.errors import HarnessError
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
    write_crash_state,
)
from torture.facts.recording.disks import ShelfDisk
from torture.machines.shelf.control import Connection
from torture.machines.shelf.server import Shelf
from torture.trials.trial.promises.proof import require_planned

DISK = ShelfDisk(serial="d0", size_mib=1, physical_sector_bytes=4096)
WRITES = 12


@pytest.fixture
def shelf(folder: Path) -> Shelf:
    """A shelf of two lives: writes over others, none of them flushed, and further ones above them."""
    shelf = Shelf(directory=folder / "r", socket=folder / "s")
    for life in range(2):
        before = folder / "r" / f"{life}.json"
        shelf.start((DISK,), view=before if life else None)
        line = Connection(socket=shelf.socket, export="d0")
        for number in range(WRITES):
            line.write(payload(16 * life + number, 8192), number * 4096, deadline_s=5)
        line.close()
        seq = shelf.freeze()
        recording = shelf.recording
        shelf.stop()
        torn = {"d0": DiskState(policy=Policy.TORN)}
        state = CrashState(recording=recording, cut=seq, seed=5, disks=torn)
        write_crash_state(folder / "r" / f"{life + 1}.json", state)
    return shelf


def state_of(shelf: Shelf, policy: Policy, seed: int) -> Path:
    """A file of this state of the last life."""
    drawn = read_crash_state(shelf.directory / "2.json")
    file = shelf.directory / f"{policy}.json"
    disks = {"d0": DiskState(policy=policy)}
    write_crash_state(file, replace(drawn, seed=seed, disks=disks))
    return file


SEEDED = (Policy.SUBSET, Policy.TORN, Policy.PREFIX, Policy.OLDEST, Policy.BUT_FEW)


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FLUSHED, *SEEDED])
def test_the_planned_state_is_served(shelf: Shelf, policy: Policy) -> None:
    view = state_of(shelf, policy, 7)
    shelf.start((DISK,), view=view)
    require_planned(shelf, view, (DISK,))
    shelf.stop()


@pytest.mark.parametrize("policy", [Policy.FLUSHED, *SEEDED])
def test_a_shelf_that_keeps_everything_is_found_out(shelf: Shelf, policy: Policy) -> None:
    shelf.start((DISK,), view=state_of(shelf, Policy.ALL, 7))
    with pytest.raises(HarnessError, match="not serve the planned crash state: d0 differs"):
        require_planned(shelf, state_of(shelf, policy, 7), (DISK,))
    shelf.stop()

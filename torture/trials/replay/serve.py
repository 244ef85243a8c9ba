"""A trial's disks, or its recovered machines, in the user's own hands.

Held machines run in a sandbox, as those of a worker do, and end with this process
(`torture.trials.replay._held` is the program in there).
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.folder import CHECK_STATE, CUT_STATE
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
    write_crash_state,
)
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording, load_recording
from torture.facts.recording.model import count_crash_states
from torture.files import CHECKOUT
from torture.machines.host.native import shelf_plugin
from torture.machines.host.scratch import Scratch, sandboxed
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.resident import unpack_recordings

_MIB = 1024 * 1024
_SERVED_STATE = "served.view.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedState:
    """The state to serve; None leaves a value as the trial had it."""

    after_check: bool = False
    """The state before the check, instead of the state after the cut."""
    cut: int | None = None
    policy: Policy | None = None
    seed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedDisks:
    """The served state, and the number of states that the same cut could have left."""

    socket: Path
    state: CrashState
    disks: tuple[ShelfDisk, ...]
    crash_states: int


@contextmanager
def served(evidence: Path, wanted: WantedState) -> Iterator[ServedDisks]:
    """Serve a trial's disks on a unix socket while the context lasts, and discard writes.

    Raises `HarnessError` when the evidence has no recording, or the wanted state is impossible.
    """
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"view-{secrets.token_hex(2)}") as folder:
        unpack_recordings(evidence, folder)
        file = folder / (CHECK_STATE if wanted.after_check else CUT_STATE)
        if not file.exists():
            raise HarnessError(f"{evidence} has no {file.name}: its trial ended before that")
        state = _wanted_state(read_crash_state(file), wanted)
        recording = load_recording(state.recording)
        if not 0 <= state.cut < len(recording.events):
            raise HarnessError(f"the log has events 0 to {len(recording.events) - 1}")
        write_crash_state(folder / _SERVED_STATE, state)
        shelf = Shelf(directory=folder / "shelf", socket=folder / "s")
        disks = _disks_of(recording, state)
        shelf.start(disks, view=folder / _SERVED_STATE)
        try:
            yield ServedDisks(
                socket=folder / "s",
                state=state,
                disks=disks,
                crash_states=count_crash_states(recording, cut=state.cut, disks=list(state.disks)),
            )
        finally:
            shelf.stop()


def _wanted_state(state: CrashState, wanted: WantedState) -> CrashState:
    disks = state.disks
    if wanted.policy is Policy.LYING or wanted.policy is Policy.EXPLICIT:
        raise HarnessError(f"{wanted.policy} needs more than a name", hint="write a view file")
    if wanted.policy is not None:
        disks = {serial: DiskState(policy=wanted.policy) for serial in state.disks}
    try:
        return replace(
            state,
            cut=state.cut if wanted.cut is None else wanted.cut,
            seed=state.seed if wanted.seed is None else wanted.seed,
            disks=disks,
        )
    except ValueError as error:
        raise HarnessError(str(error), hint="tools/view --help") from error


def _disks_of(recording: Recording, state: CrashState) -> tuple[ShelfDisk, ...]:
    return tuple(
        ShelfDisk(
            serial=disk.name,
            size_mib=disk.size // _MIB,
            sector_bytes=disk.sector,
            physical_sector_bytes=disk.physical_sector,
        )
        for disk in recording.disks
        if disk.name in state.disks
    )


REFUSED = 2
_END_DEADLINE_S = 10
_LOG = "machines.log"


def hold(evidence: Path, *, zfs: str = "", linux: str = "") -> int:
    """Recover the trial's crash state, print the ways into both machines, and wait for Ctrl-C.

    `zfs`: another version for the NAS. `linux`: another kernel for both. Returns the exit code:
    `REFUSED`, with the reason on the terminal, when the folder holds no trial or no NAS comes up.
    Raises `HarnessError` when the program with the machines dies.
    """
    shelf_plugin()  # built here, where a compiler's failure can be read
    scratch = Scratch()
    scratch.remove_abandoned()
    program = (sys.executable, "-m", "torture.trials.replay._held")
    with scratch.directory(f"hold-{secrets.token_hex(2)}") as folder:
        log = folder / _LOG
        with log.open("ab") as errors:
            process = subprocess.Popen(
                sandboxed((*program, str(evidence.absolute()), str(folder), zfs, linux)),
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is the user's word to this process alone
            )
        try:
            if process.wait() == REFUSED:
                return REFUSED
            said = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise HarnessError("\n".join(("the program with the machines ended", *said)))
        except KeyboardInterrupt:
            return 0
        finally:
            process.kill()  # the end of its namespaces ends all machines
            process.wait(_END_DEADLINE_S)

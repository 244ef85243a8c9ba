"""The engines of a walk: the kernel's ZFS, and a quicker scout where one is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Set
from pathlib import Path

from torture.choices.matrix.cells import ADMINISTRATION
from torture.choices.transports.protocol import Traits
from torture.choices.volumes import DIRECTORY, IMAGE, VolumeKind
from torture.facts.evidence.requests import BLOCK_REQUESTS
from torture.facts.recording.crash_state import CrashState, read_crash_state
from torture.facts.recording.events import Recording, ViewSource, load_recording, verify_payloads
from torture.features.walk.documents import WalkEngine
from torture.features.walk.engines.engine import (
    Engine,
    GaveUp,
    Ranges,
    Recovered,
    Scout,
    grains_of,
    grains_with_data,
)
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.features.walk.engines.native_engine import NativeEngine
from torture.features.walk.engines.recovery_programs import host_program
from torture.machines.lab.lab import Lab
from torture.trials.trial.shared.machines import Trial

_ZVOL = "/dev/zd0"
"""Without udevd a zvol has no other name than the kernel's."""


class Engines:
    """Each engine is started on its first use, and again after a state that ended it.

    It starts on the state `first`. `written`: the grains of the volume that the client was asked
    to write; None where its requests are unknown.
    """

    def __init__(
        self,
        *,
        start_kernel: Callable[[CrashState], Engine],
        start_scout: Callable[[], Scout] | None,
        first: Callable[[], CrashState],
        written: Set[int] | None,
        scratch: Path,
        require_machines: Callable[[], None] = lambda: None,
    ) -> None:
        self._require_machines = require_machines
        self._start_kernel = start_kernel
        self._start_scout = start_scout
        self._first = first
        self._written = written
        self._scratch = scratch
        self._kernel: Engine | None = None
        self._scout: Scout | None = None
        self._ranges: Ranges | None = None

    @property
    def has_scout(self) -> bool:
        """Whether states are recovered by the scout first."""
        return self._start_scout is not None

    def proven(self, state: CrashState) -> Recovered | None:
        """See `Scout`."""
        return None if self._scout is None else self._scout.proven(state)

    def kernel(self) -> Engine:
        """The kernel's ZFS. Raises `HarnessError` where it does not start, `StorageFailed` for a hang."""
        if self._kernel is None:
            self._kernel = self._start_kernel(self._first())
            self._limit(self._kernel)
        return self._kernel

    def scout(self) -> Scout:
        """The scout. Raises `HarnessError` when it does not start."""
        if self._scout is None:
            assert self._start_scout is not None, "no scout was asked for"
            self._scout = self._start_scout()
            try:
                self._limit(self._scout)
            except GaveUp:  # the kernel's ZFS finds the parts, for both engines
                self.kernel()
                self._limit(self._scout)
        return self._scout

    def nas_available_mib(self) -> int | None:
        """The memory that is left to the NAS that stays up; None where the scout spares it."""
        if self.has_scout or not isinstance(self._kernel, KernelEngine):
            return None
        return self._kernel.available_mib()

    def require_host(self) -> None:
        """Raise `HarnessError` when the host failed a machine or a disk: no state is the cause then."""
        self._require_machines()
        if isinstance(self._kernel, KernelEngine):
            self._kernel.require_healthy()

    def end_kernel(self) -> None:
        """End the NAS of the kernel's ZFS, which a state hung or crashed."""
        if self._kernel is not None:
            self._kernel.close()
        self._kernel = None

    def close(self) -> None:
        """End all engines; the next ones may be for another recording, with data at other places."""
        self._ranges = None
        self.end_kernel()
        if self._scout is not None:
            self._scout.close()
        self._scout = None

    def _limit(self, engine: Engine) -> None:
        """Let an engine read only the parts of the volume that hold data in any state."""
        if self._ranges is None and self._written is not None:
            image = self._scratch / "whole.raw"
            if not engine.recover(self._first()).is_imported:
                return
            engine.copy_volume(image)
            self._ranges = Ranges.of_grains(grains_with_data(image) | self._written)
            image.unlink()
        if self._ranges is not None:
            engine.take_ranges(self._ranges)


def engines_of(
    trial: Trial,
    wanted: WalkEngine,
    lab: Lab,
    *,
    folder: Path,
    recording: Callable[[], Recording],
    first: Callable[[], CrashState],
) -> Engines:
    """The engines that are wanted, of those that the trial's cell allows.

    `recording`: the one whose states are recovered when an engine starts; `first`: the state on
    which it starts.
    """
    disks, traits = trial.disks_left, trial.transport.traits

    def kernel(first: CrashState) -> KernelEngine:
        return KernelEngine(
            lab,
            disks=disks,
            volume=_path_of_volume(traits),
            keeps_config=trial.cell[ADMINISTRATION] is None,
            first=first,
            folder=folder / "engine",
        )

    def native() -> NativeEngine:
        assert program is not None
        _verify_all_below(recording())  # the program maps the payloads, past the shelf's check
        return NativeEngine(program, recording(), disks=disks, folder=folder / "native")

    # the library has no files, and so no image in a dataset; it finds a pool by all of its disks
    has_scout = traits.volume is VolumeKind.ZVOL and disks == trial.disks
    has_scout = has_scout and wanted is not WalkEngine.KERNEL
    program = host_program(lab.zfs, lab.linux) if has_scout else None
    requests = trial.folder / BLOCK_REQUESTS
    return Engines(
        start_kernel=kernel,
        start_scout=None if program is None else native,
        first=first,
        written=set(_written_grains(requests)) if requests.exists() else None,
        scratch=folder,
        require_machines=lab.require_host,
    )


def _verify_all_below(recording: Recording) -> None:
    """Raise `HarnessError` when a payload of a recording, or of one below its disks, has changed."""
    verify_payloads(recording)
    views = {disk.source.view for disk in recording.disks if isinstance(disk.source, ViewSource)}
    for view in views:
        _verify_all_below(load_recording(read_crash_state(view).recording))


def _path_of_volume(traits: Traits) -> str:
    """The path of the volume's data in the NAS."""
    if traits.volume is VolumeKind.ZVOL:
        return _ZVOL
    return DIRECTORY if traits.gives_files else IMAGE


def _written_grains(requests: Path) -> Iterator[int]:
    """The grains that the client's disk was asked to write."""
    for line in requests.read_bytes().splitlines():
        request = json.loads(line)
        yield from grains_of(request["offset_bytes"], request["length_bytes"])

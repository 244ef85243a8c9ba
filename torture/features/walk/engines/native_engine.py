"""OpenZFS's code as a library, in a process of the host: quick, but no kernel.

It is the scout of a walk. An assertion of the library ends its process, and the next state has a new
one. The kernel's ZFS decides about each state that is lost here, or not recovered at all.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.choices.volumes import SIZE_MIB
from torture.errors import HarnessError
from torture.facts.evidence.documents import json_object
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording
from torture.facts.recording.layers import Layers
from torture.features.walk.engines.engine import GaveUp, Ranges, Recovered, recovered_of
from torture.features.walk.states.origins import Origins, Pages, Sectors

_VOLUME_BYTES = SIZE_MIB * 1024 * 1024
_MIB = 1024 * 1024
_LOG = "native.log"
_WRITES, _RANGES, _READS = "writes", "ranges", "reads"
_START_DEADLINE_S = 60
_STATE_DEADLINE_S = 30
"""A state takes a tenth of a second; a busy host may need some seconds."""
_SAY_DEADLINE_S = 30
_END_DEADLINE_S = 30
_ANSWER_MAX = 65536
_TAIL_BYTES = 2000
_TRACE = (" ", "[", "/", "Call trace")
"""The beginnings of lines that follow a failed assertion (lib/libspl/assert.c)."""


class NativeEngine:
    """A process with the disks of a recording in its memory, which finds and imports their pool.

    `program` is the program of `vmimages/zfs/recovery`. Recovered disks are thrown away.
    """

    def __init__(
        self, program: Path, recording: Recording, *, disks: Sequence[ShelfDisk], folder: Path
    ) -> None:
        """Start it. Raises `HarnessError` when that fails."""
        folder.mkdir(parents=True, exist_ok=True)
        self._program = program
        self._disks = tuple(disks)
        self._names = [disk.serial for disk in disks]
        self._folder = folder.absolute()
        self._layers = Layers(recording, self._names)
        with (folder / _WRITES).open("wb") as file:
            file.writelines(self._layers.packed(self._names))
        self.ranges = Ranges.whole(_VOLUME_BYTES)
        self._proofs = self._no_proofs()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._started()
        except GaveUp as failure:
            raise HarnessError(failure.message, hint=failure.hint) from failure

    @property
    def log(self) -> Path:
        """The words of the library, of all its processes."""
        return self._folder / _LOG

    def take_ranges(self, ranges: Ranges) -> None:
        """See `Engine`."""
        self.ranges = ranges
        self._proofs = self._no_proofs()  # they know no reads of other parts
        if self._process is not None:
            self._say([self._ranges_command()])

    def recover(self, state: CrashState) -> Recovered:
        """See `Engine`; raises `GaveUp` when the process ends, or hangs."""
        self._started()
        answer = self._ask([*self._turned(state), "recover"], deadline_s=_STATE_DEADLINE_S)
        recovered = recovered_of(json_object(answer.encode()) or {"answer": answer[:_TAIL_BYTES]})
        self._proofs.add(state, recovered, self._reads())
        return recovered

    def proven(self, state: CrashState) -> Recovered | None:
        """See `Scout`."""
        return self._proofs.find(state)

    def copy_volume(self, into: Path) -> None:
        """See `Engine`; raises `GaveUp` when the process has ended."""
        self._ask([f"copy {into.absolute()}"], deadline_s=_STATE_DEADLINE_S)

    def close(self) -> None:
        """See `Engine`."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(_END_DEADLINE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process = None

    def _started(self) -> None:
        """Start the process, unless it runs."""
        if self._process is not None:
            return
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [self._program, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                )
        except OSError as error:
            raise HarnessError(f"{self._program} does not start: {error}") from error
        setting_up = [f"map {file.absolute()}" for file in self._layers.files]
        setting_up += [
            f"disk {disk.serial} {disk.size_mib * _MIB} {disk.sector_bytes}" for disk in self._disks
        ]
        setting_up += [f"load {self._folder / _WRITES}"]
        self._ask(setting_up, deadline_s=_START_DEADLINE_S)
        self._say([self._ranges_command()])

    def _no_proofs(self) -> Proofs:
        sizes = {disk.serial: disk.size_mib * _MIB for disk in self._disks}
        return Proofs(Origins(self._layers, sizes))

    def _reads(self) -> dict[str, Pages]:
        """The pages of each disk that the last recovery has read."""
        file = self._folder / _READS
        self._ask([f"reads {file}"], deadline_s=_STATE_DEADLINE_S)
        places, pages = np.fromfile(file, np.uint32).reshape(-1, 2).astype(np.int64).T
        return {name: np.sort(pages[places == at]) for at, name in enumerate(self._names)}

    def _turned(self, state: CrashState) -> list[str]:
        """The commands that give all disks the content of a state."""
        commands = []
        for number, name in enumerate(self._names):
            layers = self._layers.of(state, name)
            commands.append(f"turn {number} {layers.settled}")
            commands += [
                f"patch {number} {piece.file} {piece.offset} {piece.length} {piece.place}"
                for piece in layers.patches
            ]
        return commands

    def _ranges_command(self) -> str:
        file = self._folder / _RANGES
        file.write_bytes(self.ranges.packed)
        return f"ranges {_VOLUME_BYTES} {file}"

    def _ask(self, commands: Sequence[str], *, deadline_s: float) -> str:
        """The answer to the last of these commands; the process ends with a failure."""
        self._say(commands)
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        answer, end_s = b"", time.monotonic() + deadline_s
        while not answer.endswith(b"\n"):
            left_s = max(end_s - time.monotonic(), 0)
            if not select.select([pipe], [], [], left_s)[0]:
                raise self._given_up(f"hung for {deadline_s:g} s")
            piece = os.read(pipe, _ANSWER_MAX)
            if not piece:
                raise self._given_up("ended")
            answer += piece
        return answer.decode(errors="replace")

    def _say(self, commands: Sequence[str]) -> None:
        if self._process is None or self._process.stdin is None:
            raise GaveUp("the native engine has no process", hint=f"read {self.log}")
        pipe = self._process.stdin.fileno()
        left = "".join(f"{command}\n" for command in commands).encode()
        while left:
            if not select.select([], [pipe], [], _SAY_DEADLINE_S)[1]:
                raise self._given_up(f"took no command for {_SAY_DEADLINE_S} s")
            try:
                left = left[os.write(pipe, left[: select.PIPE_BUF]) :]
            except BrokenPipeError:
                raise self._given_up("ended") from None

    def _given_up(self, fate: str) -> GaveUp:
        """End the process; the next state starts another one."""
        self.close()
        tail = self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        said = [line for line in tail.splitlines() if line and not line.startswith(_TRACE)]
        last = "; ".join(said[-2:]) or "it said nothing"
        return GaveUp(f"the native engine {fate}: {last}", hint=f"read {self.log}")


_KNOWN_MAX = 2000
"""A recovery keeps some 200 KB. Of more recoveries, the one that proved nothing for longest goes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A recovery, and the origins of all sectors that it has read, by disk."""

    recovered: Recovered
    read: tuple[tuple[str, Pages, Sectors], ...]


class Proofs:
    """The recoveries so far: states that need none, for an earlier one has read the same bytes.

    A recovery depends on the bytes that it reads. Suppose that a state has the same bytes at each place
    that the recovery of another one has read. Then its recovery ends with the same content of the
    volume. ZFS may choose another copy of a block, by chance. It accepts a copy by its checksum alone,
    so it comes to the same content (module/zfs/vdev_mirror.c). Where no copy fits, it has read all of
    them. Pages with the same bytes in all states are left out of comparisons.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._known: list[_Known] = []

    def add(self, state: CrashState, recovered: Recovered, reads: Mapping[str, Pages]) -> None:
        """Remember the end of a state's recovery, and the pages of each disk that it has read."""
        self._origins.turn(state)
        read = []
        for disk, pages in reads.items():
            differing = self._origins.differing(disk, pages)
            read.append((disk, differing, self._origins.of(disk, differing)))
        self._known.append(_Known(recovered=recovered, read=tuple(read)))
        del self._known[:-_KNOWN_MAX]

    def find(self, state: CrashState) -> Recovered | None:
        """The end of a recovery that read nothing else than this state has; None without one."""
        self._origins.turn(state)
        for place in reversed(range(len(self._known))):
            if self._has_read_the_same(self._known[place]):
                known = self._known.pop(place)
                self._known.append(known)  # the next state is likely to be like this one
                return known.recovered
        return None

    def _has_read_the_same(self, known: _Known) -> bool:
        return all(
            np.array_equal(self._origins.of(disk, pages), sectors)
            for disk, pages, sectors in known.read
        )

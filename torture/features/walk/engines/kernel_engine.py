"""The kernel's own ZFS, in one NAS that stays up while its disks change their content."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from torture.choices.administration.protocol import SPARES
from torture.choices.volumes import SIZE_MIB
from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState, write_crash_state
from torture.facts.recording.disks import Profile, ShelfDisk
from torture.features.walk.engines.engine import Ranges, Recovered, recovered_of
from torture.features.walk.engines.recovery_programs import guest_program
from torture.machines.lab.domains import Disk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import Connection
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.resident import PORT, ResidentProgram

_PROGRAM = "/run/recover"
_RANGES = "/run/recover.ranges"
_BY_SERIAL = "/dev/disk/by-id/virtio-"
_COPY = "copy"
_VOLUME_BYTES = SIZE_MIB * 1024 * 1024
_CHUNK_BYTES = 1 << 20
_STATE_FILE = "turn.view.json"
_START_DEADLINE_S = 60
_STATE_DEADLINE_S = 120
_READ_DEADLINE_S = 60
_COPY_DEADLINE_S = 60
_STILL = "udevadm settle; udevadm control --exit; modprobe zfs; echo 3 > /proc/sys/vm/drop_caches"
"""Shell: without udevd no program reads the disks between two states."""

_AVAILABLE = "awk '/^MemAvailable:/ { print $2 }' /proc/meminfo"
"""Shell: KiB (proc_meminfo(5))."""


class KernelEngine:
    """One NAS with the disks of a recording, and a disk to copy the volume to.

    All its states have one pool GUID, so it holds one at a time. Recovered disks are thrown away.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        disks: Sequence[ShelfDisk],
        volume: str,
        keeps_config: bool,
        first: CrashState,
        folder: Path,
    ) -> None:
        """Start the NAS on a state. Raises `HarnessError` when it does not come up.

        `volume`: the path of the zvol, the image, or the files in the NAS. `keeps_config`: the first
        state's configuration of the pool serves for all.
        """
        self._volume = volume
        self._config = "kept" if keeps_config else "anew"
        self._guest_program = guest_program(lab.zfs, lab.linux)
        self._folder = folder
        # a walk asks for contents, not for times
        disks = [replace(disk, profile=Profile()) for disk in disks]
        self._names = [disk.serial for disk in disks]
        self._console = folder / "nas.console.log"
        self._is_imported = False
        self._shelf = Shelf(directory=folder, socket=lab.sockets / f"w{secrets.token_hex(2)}")
        self.ranges = Ranges.whole(_VOLUME_BYTES)
        copy = ShelfDisk(serial=_COPY, size_mib=SIZE_MIB)
        folder.mkdir(parents=True, exist_ok=True)
        view = folder / _STATE_FILE
        write_crash_state(view, first)
        with ExitStack() as started:
            self._shelf.start(disks, view=view, beside=(copy,), keeps_recording=False)
            started.callback(self._shelf.stop)
            self.nas: Machine = lab.start_nas(
                console_log=self._console,
                disks=tuple(self._disk(number, disk) for number, disk in enumerate((*disks, copy))),
                port_socket=lab.sockets / f"p{secrets.token_hex(2)}",
            )
            started.callback(self.nas.kill)
            self._program = started.enter_context(closing(self._started_program()))
            self._started = started.pop_all()

    def _started_program(self) -> ResidentProgram:
        """The program that recovers; no other program touches the disks from now on."""
        # a disk that an administration adds may have no partition yet
        partitions = [name for name in self._names if not name.startswith(SPARES)]
        devices = [*(f"{_BY_SERIAL}{name}-part1" for name in partitions), f"{_BY_SERIAL}{_COPY}"]
        waits = " && ".join(
            f"for i in $(seq 400); do test -e {path} && break; sleep 0.05; done; test -e {path}"
            for path in devices
        )
        self._must(f"{waits} && {_STILL}")
        self.nas.agent.put_program(_PROGRAM, self._guest_program)
        self.take_ranges(self.ranges)
        copy = f"{_BY_SERIAL}{_COPY}"
        argv = (
            _PROGRAM, PORT, "/dev/disk/by-id", self._volume, _RANGES, copy, self._config,
        )  # fmt: skip
        program = ResidentProgram(self.nas, argv)
        program.answer("start", deadline_s=_START_DEADLINE_S)
        return program

    def take_ranges(self, ranges: Ranges) -> None:
        """Read only these parts of the volume from now on."""
        self.ranges = ranges
        self.nas.agent.put_program(_RANGES, ranges.packed)

    def recover(self, state: CrashState) -> Recovered:
        """See `Engine`."""
        self._export()
        write_crash_state(self._folder / _STATE_FILE, state)
        self._shelf.turn(self._names, self._folder / _STATE_FILE)
        recovered = recovered_of(self._program.ask("state", deadline_s=_STATE_DEADLINE_S))
        self._is_imported = recovered.is_imported
        return recovered

    def _export(self) -> None:
        """Let go of the last state's pool: all states have one pool GUID."""
        if self._is_imported:
            code = self._program.ask("export", deadline_s=_STATE_DEADLINE_S).get("export")
            if code != 0:
                raise HarnessError(f"the export failed: {code}", hint=f"read {self._console}")
            self._is_imported = False

    def copy_volume(self, into: Path) -> None:
        """See `Engine`."""
        code = self._program.ask("copy", deadline_s=_COPY_DEADLINE_S).get("copy")
        if code != 0:
            raise HarnessError(f"the volume's copy failed: {code}", hint=f"read {self._console}")
        connection = Connection(socket=self._shelf.socket, export=_COPY)
        with into.open("wb") as image:
            image.truncate(_VOLUME_BYTES)
            for offset, length in self.ranges.chunks(_CHUNK_BYTES):
                content = connection.read(length, offset, deadline_s=_READ_DEADLINE_S)
                if content.count(0) != length:
                    image.seek(offset)
                    image.write(content)
        connection.close()

    def require_healthy(self) -> None:
        """Raise `HarnessError` when its shelf has ended or failed a request."""
        self._shelf.require_healthy()

    def available_mib(self) -> int:
        """The memory that the NAS has left."""
        return int(self._must(_AVAILABLE)) // 1024

    def close(self) -> None:
        """See `Engine`."""
        self._started.close()

    def _disk(self, number: int, disk: ShelfDisk) -> Disk:
        return Disk(
            target=f"vd{'bcdefghijklmnopqrstuvwxyz'[number]}",
            serial=disk.serial,
            source=self._shelf.source(disk),
            sector_bytes=disk.sector_bytes,
            physical_sector_bytes=disk.physical_sector_bytes,
        )

    def _must(self, script: str) -> str:
        return self.nas.must("sh", "-c", script, deadline_s=_START_DEADLINE_S).stdout

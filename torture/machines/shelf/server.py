"""The disks of one NAS: an nbdkit process with the suite's plugin, one for each life of the NAS."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from torture.choices.transports.protocol import DiskSource
from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.facts.recording.certain_content import Patch
from torture.facts.recording.disks import ShelfDisk
from torture.machines.host.native import shelf_plugin
from torture.machines.lab.domains import nbd_source
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import Connection, Control, FreezeOn, MarkWriter, ShelfGoneError

_END_DEADLINE_S = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How nbdkit is started: with which plugin, in which environment, by which command."""

    plugin: str
    """A path, or the name of one of nbdkit's own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside this process's own."""
    wrapper: tuple[str, ...] = ()
    """A program that starts in nbdkit's place; it has to become nbdkit."""
    threads: int | None = None
    """Threads of each connection; None leaves that to nbdkit."""

    @classmethod
    def of_shelf(cls) -> Self:
        """The shelf's plugin; raises `HarnessError` when it cannot be built."""
        return cls(plugin=str(shelf_plugin()))


def write_configuration(
    path: Path, disks: Sequence[Mapping[str, Any]], *, recording: str | None = None
) -> None:
    """Write the configuration of the shelf's plugin (native/README.md); `recording` is made beside it.

    Raises `OSError` when there is no room for it.
    """
    document: dict[str, Any] = {"schema": 1, "disks": list(disks)}
    if recording is not None:
        document["recording"] = recording
    path.write_text(json.dumps(document, indent=1))


class NbdkitProcess:
    """An nbdkit on a socket, whose path must be short. All its output goes to `errors`.

    It ends with the thread that started it.
    """

    def __init__(self, launch: Launch, *arguments: str, socket: Path, errors: Path) -> None:
        """Start it and return at once; raises `HarnessError` when nbdkit is missing."""
        nbdkit = shutil.which("nbdkit")
        if nbdkit is None:
            raise HarnessError("nbdkit is not installed", hint="tools/run --setup-only")
        threads = () if launch.threads is None else ("--threads", str(launch.threads))
        self.socket = socket
        self.errors = errors
        socket.unlink(missing_ok=True)  # left by a killed server
        with errors.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *launch.wrapper, nbdkit, "--foreground", "--exit-with-parent", *threads,
                    "--unix", str(socket), launch.plugin, *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **launch.environment},
                restore_signals=False,  # a file that grows too large is then an error, not a death
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of an ended nbdkit, negative for a signal; else None."""
        return self._process.poll()

    def output(self) -> str:
        """Its output so far."""
        return self.errors.read_text(errors="replace").strip()

    def terminate(self) -> int:
        """End it as its admin would; returns its exit code, once its clients have gone."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_END_DEADLINE_S)

    def kill(self) -> None:
        """End it like a power cut, if it runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(_END_DEADLINE_S)


RECORDINGS_OF_SHELF = "recordings"
"""The folder of a shelf within its trial's folder."""
_MIB = 1024 * 1024
_FREE_BYTES_MIN = 16 * _MIB
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_ROOM_HINT = "free some space, or set --scratch"
_START_DEADLINE_S = 20
_OVERWRITE_DEADLINE_S = 10


class Shelf:
    """The disks of one NAS, recorded in `directory`, served on `socket`.

    Each `start` makes a separate recording (`life-1`, `life-2`, ...), over the disks of a view. The
    servers' output goes to `logs`, or to `directory`.
    """

    def __init__(self, *, directory: Path, socket: Path, logs: Path | None = None) -> None:
        self.directory = directory
        self._logs = directory if logs is None else logs
        self.socket = socket
        self._server: NbdkitProcess | None = None
        self._control: Control | None = None
        self._life = 0

    @property
    def recording(self) -> Path:
        """The recording of the server that runs, or ran last."""
        return self.directory / f"life-{self._life}"

    @property
    def errors(self) -> Path:
        """That server's output on standard error."""
        return self._logs / f"shelf-{self._life}.err"

    @property
    def control(self) -> Control:
        """Its control; raises `HarnessError` when no server runs."""
        if self._control is None:
            raise HarnessError("the shelf is not running", hint=f"read {self.errors}")
        return self._control

    def source(self, disk: ShelfDisk) -> DiskSource:
        """The address of a disk for QEMU."""
        return nbd_source(self.socket, export=disk.serial)

    def marks(self) -> MarkWriter:
        """A writer of marks into the recording of the present server."""
        return MarkWriter(self.socket)

    def start(
        self,
        disks: Sequence[ShelfDisk],
        *,
        view: Path | None = None,
        beside: Sequence[ShelfDisk] = (),
        keeps_recording: bool = True,
    ) -> None:
        """Serve disks, all zeroes or with a view's content, and record their requests.

        Disks `beside` them are zeroes in any case. A shelf without a kept recording can `turn`.
        Raises `HarnessError` when nbdkit is missing, the view cannot be opened, or there is no
        room.
        """
        launch = Launch.of_shelf()
        self._life += 1
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / f"life-{self._life}.json"
        try:
            write_configuration(
                configuration,
                [*_configured(disks, view), *_configured(beside, None)],
                recording=self.recording.name if keeps_recording else None,
            )
        except OSError as error:
            raise HarnessError(
                f"no shelf in {self.directory}: {error}", hint="free some space, or set --scratch"
            ) from error
        self._server = NbdkitProcess(
            launch, f"config={configuration}", socket=self.socket, errors=self.errors
        )
        self._control = self._when_up(self._server)

    def _when_up(self, server: NbdkitProcess) -> Control:
        def control() -> Control | None:
            if server.exit_code is not None:
                raise HarnessError(
                    f"the shelf ended at once: {server.output()}", hint=f"read {self.errors}"
                )
            try:
                return Control(self.socket) if self.socket.exists() else None
            except ShelfGoneError:
                return None  # nbdkit binds its socket before it listens

        return wait_for(control, what="answer of the shelf", deadline_s=_START_DEADLINE_S)

    def overwrite(self, disk: ShelfDisk, patch: Patch) -> None:
        """Write to a disk as a NAS would; raises `HarnessError` when the shelf refuses it."""
        connection = Connection(socket=self.socket, export=disk.serial)
        connection.write(patch.content, patch.offset, deadline_s=_OVERWRITE_DEADLINE_S)
        connection.close()

    def turn(self, disks: Sequence[str], view: Path) -> None:
        """Give these disks the content of a view while they stay attached, and forget all writes."""
        self.control.turn({name: {"view": str(view), "disk": name} for name in disks})

    def freeze(self) -> int:
        """Freeze all disks: they accept and acknowledge nothing afterwards. Returns the cut's number."""
        if self._server is None or self._server.exit_code is not None:
            raise HarnessError("the shelf died before the cut", hint=f"read {self.errors}")
        return self.control.freeze()

    def freeze_on(self, trigger: FreezeOn) -> None:
        """Make the shelf freeze by itself with an event to come."""
        self.control.freeze_on(trigger)

    def halt_with_freeze(self, *machines: Machine) -> None:
        """Make these machines stop at the freeze, whatever causes it."""
        pids = [machine.qemu_pid for machine in machines]
        self.control.halt_with_freeze([pid for pid in pids if pid is not None])

    @property
    def is_frozen(self) -> bool:
        """Whether it is frozen."""
        return self.control.status().frozen

    @property
    def is_started(self) -> bool:
        """Whether its server was started and not stopped since; it may have died."""
        return self._server is not None

    def require_healthy(self) -> None:
        """Raise `HarnessError` when the server is gone or failed a request: the NAS is not the cause."""
        if self._server is None or self._server.exit_code is not None:
            raise HarnessError("the shelf died under the NAS", hint=f"read {self.errors}")
        status = self.control.status()
        if status.errors:
            failed = f"the shelf failed {status.errors} requests, last: {status.last_error}"
            if not any(os.strerror(code) in status.last_error for code in _NO_ROOM):
                raise HarnessError(failed, hint=f"read {self.errors}")
            raise HarnessError(
                f"{self.directory} had no room for the NAS's writes: {failed}", hint=_ROOM_HINT
            )
        self.require_room()

    def require_room(self) -> None:
        """Raise `HarnessError` when the recording will soon lack room.

        It queries the filesystem alone: waits call it often, and from any thread.
        """
        if not self.is_started:
            return
        free = shutil.disk_usage(self.directory).free
        if free < _FREE_BYTES_MIN:
            raise HarnessError(
                f"{self.directory} has no room for the NAS's writes: {free // _MIB} MiB are free",
                hint=_ROOM_HINT,
            )

    def stop(self) -> None:
        """End the server by SIGKILL, if it runs. Its recording stays."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is None:
            return
        self._server.kill()
        self._server = None


def _configured(disks: Sequence[ShelfDisk], view: Path | None) -> list[dict[str, Any]]:
    """The disks as the plugin's configuration has them."""
    return [
        {
            "name": disk.serial,
            "size": disk.size_mib * _MIB,
            "sector": disk.sector_bytes,
            "physical_sector": disk.physical_sector_bytes,
            "profile": asdict(disk.profile),
        }
        | ({"fault": disk.fault.as_json()} if disk.fault else {})
        | ({"source": {"view": str(view), "disk": disk.serial}} if view else {})
        for disk in disks
    ]

"""Serving the NAS's disks: one nbdkit process, one NBD export a disk, on a unix socket."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.lab.deadlines import truth, wait_for
from torture.lab.domains import NbdSource
from torture.shelf.log import ShelfActivity, activity_of, has_unflushed_write

_MIB = 1024 * 1024
_FREE_BYTES_MIN = 16 * _MIB
_TAIL_BYTES = 4096
_START_DEADLINE_S = 10
_END_DEADLINE_S = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfDisk:
    """One disk on the shelf; its file is sparse."""

    serial: str
    size_mib: int


class Shelf:
    """The disks of one NAS, in `directory`, served on `socket`.

    They outlive the server: `start` serves them again.
    """

    def __init__(self, *, directory: Path, socket: Path, disks: tuple[ShelfDisk, ...]) -> None:
        self.disks = disks
        self._disks_directory = directory / "disks"
        self._socket = socket
        self._log_directory = directory
        self._server: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def create(self) -> None:
        """Make the disks, all zeroes; raises `HarnessError` when there is no room."""
        self._disks_directory.mkdir(parents=True)
        for disk in self.disks:
            path = self._disks_directory / disk.serial
            try:
                with path.open("xb") as file:
                    file.truncate(disk.size_mib * _MIB)
            except OSError as error:
                raise HarnessError(
                    f"no disk {path}: {error}", hint="free some space, or set --scratch"
                ) from error

    @property
    def log(self) -> Path:
        """The log of the server that runs, or ran last: every request, at submission and completion."""
        return self._log_directory / f"shelf-{self._starts}.log"

    def source(self, disk: ShelfDisk) -> NbdSource:
        """Where QEMU finds a disk."""
        return NbdSource(socket=self._socket, export=disk.serial)

    def start(self) -> None:
        """Serve the disks; raises `HarnessError` when nbdkit is missing or does not come up."""
        nbdkit = shutil.which("nbdkit")
        if nbdkit is None:
            raise HarnessError("nbdkit is not installed", hint="tools/run --setup-only")
        self._starts += 1
        self._socket.unlink(missing_ok=True)
        errors = self._log_directory / f"shelf-{self._starts}.err"
        with errors.open("wb") as stderr:
            self._server = subprocess.Popen(
                [
                    nbdkit, "--foreground", "--unix", str(self._socket), "--filter", "log",
                    "file", f"dir={self._disks_directory}", f"logfile={self.log}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )  # fmt: skip
        server = self._server

        def is_up() -> bool | None:
            if server.poll() is not None:
                said = errors.read_text(errors="replace").strip()
                raise HarnessError(f"the shelf's nbdkit ended at once: {said}")
            return truth(self._socket.exists())

        wait_for(is_up, what="socket of the shelf", deadline_s=_START_DEADLINE_S)

    def freeze(self) -> None:
        """From here on nothing is accepted or acknowledged, on all disks at the same instant."""
        if self._server is None or self._server.poll() is not None:
            raise HarnessError("the shelf died before the cut", hint=f"read {self.log}")
        pid = self._server.pid
        os.kill(pid, signal.SIGSTOP)
        wait_for(
            lambda: truth(_is_stopped(pid)),
            what="stop of all threads of the shelf",
            deadline_s=_END_DEADLINE_S,
            poll_s=0.001,
        )

    def activity(self) -> ShelfActivity:
        """What the server that runs, or ran last, was asked.

        Raises `HarnessError` when it failed a request: what the NAS then does is not the NAS's doing.
        """
        activity = activity_of(self.log.read_text(errors="replace"))
        if activity.errors:
            free_mib = shutil.disk_usage(self._log_directory).free // _MIB
            raise HarnessError(
                f"the shelf failed {activity.errors} requests; {free_mib} MiB are free below "
                f"{self._log_directory}",
                hint="free some space, or set --scratch",
            )
        return activity

    def has_unflushed_write(self) -> bool:
        """Whether just now a disk has a write that no flush covers yet."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return has_unflushed_write(log.read().decode(errors="replace"))

    def must_be_well(self) -> None:
        """Raise `HarnessError` when the server is gone or failed a request: not the NAS's doing.

        A full disk may swallow the very line of the log that would tell.
        """
        if self._server is None or self._server.poll() is not None:
            raise HarnessError("the shelf died under the NAS", hint=f"read {self.log}")
        if (free := shutil.disk_usage(self._log_directory).free) < _FREE_BYTES_MIN:
            raise HarnessError(
                f"only {free // _MIB} MiB are free below {self._log_directory}",
                hint="free some space, or set --scratch",
            )
        self.activity()

    def stop(self) -> None:
        """End the server by SIGKILL, if it runs. What it completed stays in the disks' files."""
        if self._server is None:
            return
        self._server.kill()
        self._server.wait(_END_DEADLINE_S)
        self._server = None


def _is_stopped(pid: int) -> bool:
    """Whether every thread of a process is stopped: SIGSTOP takes a moment to reach all of them."""
    states = {
        (task / "stat").read_text().rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    }
    return states <= {"T", "t"}

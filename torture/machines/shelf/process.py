"""One nbdkit: started over a configuration, awaited, ended. Every disk server starts here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from torture.errors import HarnessError
from torture.machines.host.native import shelf_plugin

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

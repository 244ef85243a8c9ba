"""A Dask scheduler and workers as processes of their own, as `tools/fleet commands` starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from suites.selftest.programs.fleet.dask_stand_in import DIRECTIONS
from torture.deadlines import wait_for
from torture.features.fleet.cluster import AUTHORITY, CERTIFICATE, KEY, settings_in_words
from torture.files import CHECKOUT

_DEADLINE_S = 60
WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
"""A session of tests that is killed leaves no cluster behind."""


class Cluster:
    """The processes; all end with the context. `prefix` starts them elsewhere on this host."""

    def __init__(
        self, folder: Path, *, certificates: Path | None = None, prefix: tuple[str, ...] = ()
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        names = (("ca-file", AUTHORITY), ("cert", CERTIFICATE), ("key", KEY))
        self._tls = [
            word
            for option, name in names
            if certificates is not None
            for word in (f"--tls-{option}", str(certificates / name))
        ]
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._dask(
            "scheduler", "--port", "0", "--protocol", "tls" if certificates else "tcp",
            "--no-dashboard", "--no-show", "--scheduler-file", str(folder / "scheduler.json"),
        )  # fmt: skip
        self.address: str = wait_for(
            lambda: _address_in(folder / "scheduler.json"), what="scheduler", deadline_s=_DEADLINE_S
        )

    def worker(
        self, directions: Path, *, nanny: bool = False, **environment: str
    ) -> subprocess.Popen[bytes]:
        """A worker process with further variables; with a nanny, the nanny's process."""
        kind = "--nanny" if nanny else "--no-nanny"
        return self._dask("worker", self.address, "--nthreads", "1", "--memory-limit", "0", kind,
                          "--no-dashboard", "--local-directory", str(self._folder),
                          **environment, **{DIRECTIONS: str(directions)})  # fmt: skip

    def _dask(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        settings = dict(word.split("=") for word in settings_in_words().split())
        settings |= {"PYTHONPATH": str(CHECKOUT)} | environment
        with (self._folder / f"{arguments[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._prefix, *WITH_US, sys.executable, "-m", "distributed.cli.dask_" + arguments[0],
                 "--host", "127.0.0.1", *arguments[1:], *self._tls],
                cwd=CHECKOUT,
                env=os.environ | settings,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_DEADLINE_S)


def _address_in(file: Path) -> str | None:
    """The scheduler's address; None until it has written its file."""
    try:
        address: str = json.loads(file.read_text())["address"]
    except (OSError, ValueError):
        return None
    return address

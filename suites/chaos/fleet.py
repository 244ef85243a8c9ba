"""A fleet on this host, whose processes a disturbance hits."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from suites.chaos.host_disks import HostDisks
from suites.selftest.programs.fleet.dask_cluster import Cluster
from suites.selftest.runs.processes import (
    Sandbox,
    children_of,
    commands_in,
    open_files_of,
    sandboxes_of,
)
from torture.records.record.run_document import EVIDENCE_FOLDER

_WORKERS = 2
_NO_OP = {"seconds": "2", "bytes": str(1 << 18)}
"""The length of a trial without machines, and the size of its evidence."""


class Fleet:
    """A scheduler, two workers below nannies, and a host without images; anew without a scheduler."""

    def __init__(self, disks: HostDisks) -> None:
        self.disks = disks
        self._stack = ExitStack()
        self.sandboxes: set[Sandbox] = set()
        """Each that was ever seen."""
        self.begin()

    def begin(self) -> None:
        """End the cluster where there is one, and start another."""
        self._stack.close()
        folder = self._stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        self.cluster = self._stack.enter_context(Cluster(Path(folder), prefix=self.disks.prefix))
        self._folder = Path(folder)
        for wish, value in _NO_OP.items():
            (self._folder / wish).write_text(value)
        self.cluster.worker(self._folder, TORTURE_CACHE=str(self._folder / "no images"))
        self.nannies = [self.cluster.worker(self._folder, nanny=True) for _ in range(_WORKERS)]

    def replace(self, nanny: subprocess.Popen[bytes]) -> None:
        """Let a late host join for one whose nanny was killed."""
        self.nannies.remove(nanny)
        self.nannies.append(self.cluster.worker(self._folder, nanny=True))

    def workers(self) -> list[int]:
        """The processes that run the trials; a nanny starts one again that dies."""
        children = [child for nanny in self.nannies for child in children_of(nanny.pid)]
        return [child for child in children if b"spawn_main" in _command_of(child)]

    def present_sandboxes(self) -> set[Sandbox]:
        """Those of the present workers."""
        found = {one for nanny in self.nannies for one in sandboxes_of(nanny.pid)}
        self.sandboxes |= found
        return found

    def programs(self, name: str) -> list[int]:
        """The processes of a program in the sandboxes."""
        inside = commands_in(self.present_sandboxes())
        return [pid for pid, program in inside.items() if program.startswith(name)]

    def trials_at_work(self) -> set[str]:
        """The trials whose machines run: QEMU writes a console into its trial's folder."""
        files = (file for pid in self.programs("qemu-system") for file in open_files_of(pid))
        return {
            file.parts[file.parts.index(EVIDENCE_FOLDER) + 1]
            for file in files
            if EVIDENCE_FOLDER in file.parts[:-1]
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

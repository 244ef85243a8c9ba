"""A fleet on this host, and a session of pytest whose campaign runs on it: what a disturbance hits."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from suites.chaos.host_disks import HostDisks
from suites.selftest.programs.dask_cluster import Cluster
from suites.selftest.runs.processes import (
    Sandbox,
    children_of,
    commands_in,
    open_files_of,
    sandboxes_of,
)
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.records.record.run_layout import EVIDENCE_FOLDER, LATEST, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.trials.plan.draw import draw_trials

_WORKERS = 2
_CTRL_C_WORKS = ("env", "--default-signal=INT")
"""A shell's background job ignores Ctrl-C, and so would the session."""


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


class Session:
    """`pytest suites/powercut` on the fleet, begun again with `--continue` after it was ended."""

    def __init__(
        self, disks: HostDisks, name: str, *, trials: int, seed: int, load_ms: int
    ) -> None:
        self._disks = disks
        self._results = disks.results / name
        self.log = disks.results.with_name(f"session-{name}.log")
        """The output of all its beginnings, on a disk that has room."""
        self._options = ("--trials", str(trials), "--seed", str(seed))
        self._load_ms = load_ms
        cells = cells_of(Matrix.QUICK)
        drawn = draw_trials(cells, trials=trials, run_seed=seed, load_ms=load_ms)
        self.drawn = sorted(spec.trial for spec in drawn)
        self.begun = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the session has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """The records of its run so far."""
        file = self._disks.seen(self._results) / LATEST / TRIALS_FILE
        return read_records(file).records if file.exists() else ()

    @property
    def is_complete(self) -> bool:
        """Whether no trial is missing."""
        return {record.trial for record in self.records} == set(self.drawn)

    def in_words(self) -> str:
        """Its progress."""
        dead = sum(record.dead_tries for record in self.records)
        return f"{len(self.records)} of {len(self.drawn)} trials, {dead} dead tries"

    def begin(self, address: str) -> None:
        """Start, or go on with the run where there is one."""
        self.begun += 1
        latest = self._disks.seen(self._results) / LATEST
        continued: tuple[str, ...] = ()
        if latest.is_symlink():  # its target has this name inside
            continued = ("--continue", str(self._results / latest.readlink().name))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self._disks.prefix, *_CTRL_C_WORKS,
                    sys.executable, "-m", "pytest", "suites/powercut", "-q",
                    "-p", "no:cacheprovider", "--matrix", str(Matrix.QUICK), *self._options,
                    "--duration", str(self._load_ms / 1000), "--results", str(self._results),
                    "--workers", f"dask:{address}", *continued,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """End it at once; nothing where it has ended."""
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

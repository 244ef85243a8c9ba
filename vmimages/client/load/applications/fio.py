"""fio: each writer runs a job file again and again, each time in a folder of its own.

A run is a transaction. fio syncs its writes (`end_fsync`), a mark beside the files holds their
hashes, and the names of both are synced. The facts needed to verify it leave the client by the
ledger: which runs were acknowledged. A run's number gives its random seed. The seed and the job
file give all its writes, for `verify_only`: "only verify data still matches previous invocation of
this workload" (fio(1)). The state that fio itself saves (`verify_state_save`) knows the completed
writes, durable or not, and is lost with the client.

fio takes another run's data at the same place for this run's: hence the hashes in the mark.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from . import (
    TRANSACTION,
    Application,
    ApplicationError,
    Performer,
    Transaction,
    TransactionPlanner,
    found,
)
from ._programs import run_program, sync_names, words_of, write_file

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_MARK = ".complete"
_REHEARSAL = "rehearsal"
_RUNS_AT_ONCE = 8
_SAME = ("verify_state_save=0", "randrepeat=1")
_WRITING = ("do_verify=0", "end_fsync=1")
_VERIFYING = ("do_verify=1", "verify_only=1", "verify_fatal=1", "allow_file_create=0")
_TOGETHER = "thread=1"
"""One process verifies several runs: starting fio takes longer than a verification."""


def filled(job_file: str, options: Sequence[str]) -> str:
    """A job file with these options at the end of each job, where they override others."""
    lines: list[str] = []
    is_job = False
    for line in [*job_file.splitlines(), "["]:
        if line.lstrip().startswith("["):
            lines += options if is_job else ()
            is_job = line.strip().lower() != "[global]"
        lines.append(line)
    return "\n".join(lines[:-1]) + "\n"


def hashes_in(directory: str) -> dict[str, str]:
    """The hash of each file of a run; raises `OSError`."""
    found = {}
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 - pathlib is slow to import
        if name != _MARK:
            with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


class _Planner(TransactionPlanner):
    def draw(self) -> Transaction:
        return Transaction(kind=TRANSACTION, what={"runs": 1})


class _Performer(Performer):
    def __init__(self, application: Fio, writer: int) -> None:
        super().__init__()
        self._application = application
        self._writer = writer

    def perform(self, transaction: Transaction, seq: int) -> None:
        parent = self._application.runs_of(self._writer)
        directory = f"{parent}/{seq}"
        begun_ns = time.monotonic_ns()
        try:
            self.step = "fio"
            os.mkdir(directory)  # noqa: PTH102 - pathlib is slow to import
            self._application.write(directory, seq)
            self.step = "fsync"
            sync_names((directory,))
            mark = json.dumps(hashes_in(directory)).encode()
            write_file(f"{directory}/{_MARK}", mark, is_synced=True)
            sync_names((directory, parent))
        except ApplicationError as error:
            self.step = f"{self.step}: {error}"
            raise
        self.durable_call_took(begun_ns)


class Fio(Application):
    """Each writer has a folder, with a folder for each of its runs."""

    def runs_of(self, writer: int) -> str:
        """The path of a writer's runs."""
        return f"{self.directory}/{writer}"

    def prepare(self) -> None:
        """Make folders, and one run: it shows whether fio can verify this job at all."""
        rehearsal = f"{self.directory}/{_REHEARSAL}"
        for directory in (
            rehearsal,
            *(self.runs_of(writer) for writer in range(self.job["writers"])),
        ):
            os.makedirs(directory)  # noqa: PTH103 - pathlib is slow to import
        self.write(rehearsal, 0)
        if wrong := self._verify([(0, rehearsal)]):
            raise ApplicationError(f"fio does not find again what this job writes: {wrong[0]}")
        shutil.rmtree(rehearsal)

    def planner(self, writer: int) -> TransactionPlanner:
        """One run after another."""
        return _Planner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """The performer that runs fio."""
        return _Performer(self, writer)

    def write(self, directory: str, seq: int) -> None:
        """Run the job in this folder; raises `ApplicationError`."""
        done = _fio(self._job_of(seq, directory, _WRITING))
        if done.returncode != 0:
            raise ApplicationError(f"fio returned {done.returncode}: {_words_of(done)}")

    def read(self) -> dict[str, Any]:
        """Which of the runs that were marked as complete fio verifies."""
        complete: list[tuple[int, str]] = []
        refused: list[str] = []
        for writer in range(self.job["writers"]):
            parent = self.runs_of(writer)
            try:
                names = sorted(os.listdir(parent))  # noqa: PTH208 - pathlib is slow to import
            except OSError as error:
                refused.append(f"runs of {writer}: {error}")
                continue
            runs = [(int(name), f"{parent}/{name}") for name in names if name.isdigit()]
            complete += [run for run in runs if os.path.exists(f"{run[1]}/{_MARK}")]  # noqa: PTH110
        parts = {seq: wrong for seq, directory in complete if (wrong := _changed_in(directory))}
        for first in range(0, len(complete), _RUNS_AT_ONCE):
            parts |= self._verify(complete[first : first + _RUNS_AT_ONCE])
        whole = sorted(seq for seq, _ in complete if seq not in parts)
        return found(whole=whole, parts=parts, refused="; ".join(refused))

    def _verify(self, runs: Sequence[tuple[int, str]]) -> dict[int, str]:
        """The runs that fio fails to verify, in its own words; all in one process while that succeeds."""
        options = (*_VERIFYING, _TOGETHER)
        done = _fio("".join(self._job_of(seq, directory, options) for seq, directory in runs))
        if done.returncode == 0:
            return {}
        if len(runs) == 1:
            return {runs[0][0]: f"fio returned {done.returncode}: {_words_of(done)}"}
        return {seq: how for run in runs for seq, how in self._verify([run]).items()}

    def _job_of(self, seq: int, directory: str, options: Sequence[str]) -> str:
        seed = (self.job.get("trial", 0) + seq * 0x9E3779B1) & 0x7FFFFFFF
        own = (f"directory={directory}", f"randseed={seed}")
        return filled(self.job["job_file"], (*own, *_SAME, *options))


def _changed_in(directory: str) -> str:
    """The changed file of a complete run, if there is one."""
    try:
        with open(f"{directory}/{_MARK}", encoding="ascii") as file:  # noqa: PTH123
            then, now = json.load(file), hashes_in(directory)
    except (OSError, ValueError) as error:
        return f"{_MARK}: {error}"
    changed = [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
    return f"{changed[0]} is not what it was when its run ended" if changed else ""


def _fio(job_file: str) -> subprocess.CompletedProcess[bytes]:
    with tempfile.TemporaryDirectory() as elsewhere:
        write_file(f"{elsewhere}/job.fio", job_file.encode())
        return run_program(["fio", "--output=/dev/null", "job.fio"], directory=elsewhere)


def _words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line states the cause; fio goes on with its consequences."""
    lines = done.stderr.decode(errors="backslashreplace").splitlines()
    return "; ".join(lines[:2]) or words_of(done.stdout)


APPLICATION = Fio

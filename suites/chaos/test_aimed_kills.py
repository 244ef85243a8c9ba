"""A QEMU that the host kills while it starts shows nothing of the storage: no such trial has a verdict.

The kernel does so where memory runs out. Each trial loses one machine of those that start after its
cut, 0.1 to 0.9 s after the start.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from suites.selftest.runs.processes import commands_in, open_files_of, sandboxes_of, start_run
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import EVIDENCE_FOLDER, LATEST, TRIALS_FILE
from torture.records.record.trials_file import read_records

_CELL = "iscsi-standard-noslog-ext4-bothdie"
_TRIALS = 8
_VICTIMS = ("checker", "nas-2")
"""Taken in turn."""
_DELAYS_S = tuple(number / 10 for number in range(1, 10))
_POLL_S = 0.03
_DEADLINE_S = 1800


@dataclass(kw_only=True)
class _Aim:
    """The machines that were killed, by their trials, and those that will be."""

    hits: dict[str, str] = field(default_factory=dict)
    _born_s: dict[int, float] = field(default_factory=dict)
    _due_s: dict[int, float] = field(default_factory=dict)

    def look(self, run_pid: int) -> None:
        """Take aim at machines that have just started, and kill those whose time has come."""
        now_s = time.monotonic()
        for pid, program in commands_in(sandboxes_of(run_pid)).items():
            if not program.startswith("qemu-system"):
                continue
            born_s = self._born_s.setdefault(pid, now_s)
            trial, role = _trial_and_role(pid)
            if trial in self.hits or role != _VICTIMS[len(self.hits) % len(_VICTIMS)]:
                continue
            delay_s = _DELAYS_S[len(self.hits) % len(_DELAYS_S)]
            self.hits[trial] = f"{role} after {delay_s} s"
            self._due_s[pid] = born_s + delay_s
        for pid in [pid for pid, due_s in self._due_s.items() if now_s >= due_s]:
            del self._due_s[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _trial_and_role(pid: int) -> tuple[str, str]:
    """By the console of a QEMU, which lies in its trial's folder; empty before it is open."""
    for file in open_files_of(pid):
        if EVIDENCE_FOLDER in file.parts[:-1] and file.name.endswith(".console.log"):
            trial = file.parts[file.parts.index(EVIDENCE_FOLDER) + 1]
            return trial, file.name.removesuffix(".console.log")
    return "", ""


def test_no_machine_that_is_killed_while_it_starts_becomes_a_verdict(tmp_path: Path) -> None:
    scratch, results = tmp_path / "scratch", tmp_path / "results"
    scratch.mkdir()
    process = start_run(
        "--cell", _CELL, "--trials", str(_TRIALS), "--duration", "4",
        scratch=scratch, results=results, log=tmp_path / "log",
    )  # fmt: skip
    aim, end_s = _Aim(), time.monotonic() + _DEADLINE_S
    try:
        while process.poll() is None:
            assert time.monotonic() < end_s, "the run did not end"
            aim.look(process.pid)
            time.sleep(_POLL_S)
    finally:
        process.kill()
        process.wait()
    records = read_records(results / LATEST / TRIALS_FILE).records
    ends = {record.trial: (record.verdict, record.error) for record in records}
    hit = {how: ends[trial] for trial, how in aim.hits.items() if trial in ends}
    assert len(hit) >= _TRIALS // 2, "too few machines were hit"
    assert {how: end for how, end in hit.items() if end[0] is not Verdict.INCONCLUSIVE} == {}

"""Crash states an hour: the naive loop, and walks by the kernel's ZFS and by both engines.

The naive loop boots, cuts, boots and checks with new machines for each state. All three take the same
cell, one after the other, two at a time. So their ratio is of one host and one hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.settings import DISK
from torture.features.walk.documents import WalkDocument
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials_file import read_records

_CELL = "iscsi-standard-noslog-ext4-bothdie"
_JOBS = 2
_HOUR_S = 3600
_DEADLINE_S = 1500
_NAIVE = ("suites/powercut", "--trials", "4", "--boot", "cold", "--duration", "4")
_WALKS = {
    "kernel": ("--states", os.environ.get("TORTURE_BENCH_STATES", "400"), "--minutes", "8"),
    "both": ("--states", "2100", "--minutes", "8"),
}
_FASTER_MIN = {"kernel": 20, "both": 60}
"""Than the naive loop, at least."""


def test_a_walk_recovers_more_states_than_new_machines_do(
    figures: Figures, make_folder: Callable[[Path], Path]
) -> None:
    folder = make_folder(DISK)
    took_s, run = _ran(folder / "naive", *_NAIVE)
    records = read_records(run / TRIALS_FILE).records
    assert {record.verdict for record in records} == {Verdict.INTACT}
    naive = len(records) / took_s * _HOUR_S
    figures.say("naive loop", f"{naive:.0f} states/h with a client's check, {_JOBS} at a time")
    for engine, words in _WALKS.items():
        orders = ("--engine", engine, "--trials", str(_JOBS), "--duration", "8", *words)
        _, run = _ran(folder / engine, "suites/replay", *orders)
        walks = _sound_walks(run)
        counted = sum(walk.counted / walk.walked_ms for walk in walks) * 1000 * _HOUR_S
        figures.say(f"walk, {engine}", _in_words(walks, counted, naive))
        assert counted > naive * _FASTER_MIN[engine]


def _sound_walks(run: Path) -> list[WalkDocument]:
    """The walks of a run. A loss that one met is a finding; a recovery that ends otherwise is none."""
    records = read_records(run / TRIALS_FILE).records
    assert all(record.is_conclusive for record in records), [record.error for record in records]
    walks = [walk for record in records if (walk := record.part(WalkDocument)) is not None]
    assert len(walks) == _JOBS
    for walk in walks:
        assert (walk.differing, walk.proofs_differing) == (0, 0)
        assert (walk.disagreeing, walk.fresh_differing) == (0, 0)
    return walks


def _in_words(walks: list[WalkDocument], counted: float, naive: float) -> str:
    recovered = sum(
        (walk.recovered + walk.repeated + walk.proofs_repeated + walk.compared) / walk.recovering_ms
        for walk in walks
    )
    contents = sum(walk.contents / walk.checking_ms for walk in walks)
    both = sum(
        1 / (walk.recovering_ms / walk.recovered + walk.checking_ms / walk.contents)
        for walk in walks
    )
    per_hour = 1000 * _HOUR_S
    return (
        f"{counted:.0f} states/h, {counted / naive:.0f} times the naive loop; recoveries alone "
        f"{recovered * per_hour:.0f}, checks alone {contents * per_hour:.0f}, a recovery and a "
        f"check for each state {both * per_hour:.0f}"
    )


def _ran(results: Path, suite: str, *words: str) -> tuple[float, Path]:
    """The seconds of a run, and its folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite]
    command += ["--cell", _CELL, "--jobs", str(_JOBS), "--seed", "5", "--results", str(results)]
    begun_s = time.monotonic()
    done = subprocess.run(
        [*command, *words], cwd=CHECKOUT, timeout=_DEADLINE_S, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    took_s = time.monotonic() - begun_s
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        pytest.fail(done.stdout[-3000:] + done.stderr[-1000:], pytrace=False)
    (run,) = {path.parent.resolve() for path in results.glob(f"*/{TRIALS_FILE}")}
    return took_s, run

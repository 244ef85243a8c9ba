"""Controls of a walk: both engines come to the same contents, and an unsafe recording shows losses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suites.selftest.machinery.controls import (
    WALKED_BOTH,
    WALKED_STATES,
    WALKED_UNSAFE,
    Controls,
    records_of,
)
from torture.choices.matrix.cells import Cell
from torture.deadlines import wait_until_true
from torture.facts.zfs.versions import DEFAULT, zfs_version
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.engines.recovery_programs import host_program
from torture.features.walk.tasks import WALKED
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord

_END_DEADLINE_S = 10


def _walked(controls: Controls, cell: Cell) -> tuple[TrialRecord, WalkDocument]:
    (record,) = records_of(controls.campaign, cell)
    assert record.origin == WALKED
    walk = record.part(WalkDocument)
    assert walk is not None, record.error
    assert sum(walk.outcomes.values()) == walk.counted
    assert walk.counted <= WALKED_STATES[cell] < walk.distinct
    assert walk.repeated >= 1
    assert (walk.differing, walk.fresh_differing) == (0, 0)
    assert walk.proofs_differing == 0
    assert 0 < walk.contents <= WALKED_STATES[cell]
    assert walk.seen_once <= walk.contents
    return record, walk


def test_a_fresh_nas_shows_the_loss_of_an_unsafe_one(controls: Controls) -> None:
    """Without any dropped write: with sync=disabled the lost data were only in memory."""
    record, walk = _walked(controls, WALKED_UNSAFE)
    assert walk.states_lost > 0, walk.outcomes
    first = walk.losses[0]
    assert first.dropped == ()
    assert record.verdict == first.verdict
    assert (record.acknowledged, record.lost) == (first.acknowledged, first.lost)


def test_both_engines_recover_the_same_contents(controls: Controls) -> None:
    """The library on the host, and the kernel's ZFS in its NAS.

    A state may well hold a torn sector (docs/findings.md): the engines then agree about it, too.
    """
    _, walk = _walked(controls, WALKED_BOTH)
    assert {Verdict.POOL_LOST, Verdict.UNAVAILABLE}.isdisjoint(walk.outcomes)
    assert (walk.engine, walk.given_up) == (WalkEngine.BOTH, 0)
    assert walk.compared >= 4
    assert walk.disagreeing == 0
    assert walk.contents > 1, "equal contents show nothing"


_OWNER = """
import os, subprocess, sys, time
process = subprocess.Popen([sys.argv[1], str(os.getpid())], stdin=0)
print(process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.usefixtures("controls")
def test_the_native_program_does_not_outlive_its_owner() -> None:
    """Even while its standard input stays open."""
    program = host_program(zfs_version(DEFAULT))
    reads, writes = os.pipe()
    argv = [sys.executable, "-c", _OWNER, str(program)]
    with subprocess.Popen(argv, stdin=reads, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        place = Path("/proc") / owner.stdout.readline().strip() / "exe"
        os.write(writes, b"disk data0 1048576 512\n")
        assert place.exists()
        owner.kill()
    assert wait_until_true(lambda: not place.exists(), deadline_s=_END_DEADLINE_S, poll_s=0.05)
    os.close(reads)
    os.close(writes)

"""Workers for Dask hosts that need no machines: each trial leaves evidence of realistic size.

`DIRECTIONS` names a folder with a file for each wish of a test: the hosts are other processes.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from suites.selftest.unit.fake_workers import record_of
from torture.errors import HarnessError
from torture.records.record.specs import TrialSpec
from torture.trials.workers.protocol import WorkerOrders

DIRECTIONS = "TORTURE_STAND_IN"
EVIDENCE_BYTES = 2 * 1024**2
RECORDING = "recording.bin"
_TEXT = b'{"step": "zpool status", "exit_code": 0, "stdout": "  pool: tank\\n state: ONLINE\\n"}\n'


def wished(name: str, *, once: bool = False) -> str | None:
    """The content of a test's wish; None where the test has none, or `once` had it before."""
    file = Path(os.environ.get(DIRECTIONS) or "/nonexistent") / name
    if not file.exists():
        return None
    content = file.read_text()
    if once:
        file.unlink()
    return content


class StandIn:
    """A worker; its trials take as long as the wish `seconds` says."""

    def __init__(self, orders: WorkerOrders, hear: Callable[[str], None]) -> None:
        self._orders = orders
        self._hear = hear
        self._killed = False
        self.is_running = False

    def start(self) -> None:
        """Refuse where a test wishes it."""
        if (why := wished("refuses")) is not None:
            raise HarnessError(why)
        self.is_running = True

    def run_plain(self, spec: dict[str, Any], *, deadline_s: float) -> dict[str, Any]:
        """Write evidence, half of it text, and record the verdict that the trial's number draws."""
        trial = TrialSpec.from_json(spec)
        folder = self._orders.run.evidence_of(trial.trial)
        folder.mkdir(parents=True)
        half = int(wished("bytes") or EVIDENCE_BYTES) // 2
        (folder / RECORDING).write_bytes(random.Random(trial.seed).randbytes(half))
        (folder / "tools.jsonl").write_bytes(_TEXT * (half // len(_TEXT)))
        self._hear("load")
        end = time.monotonic() + float(wished("seconds") or 0)
        while time.monotonic() < end:
            if not self.is_running:
                raise HarnessError("a worker died of SIGKILL, without a message")
            time.sleep(0.01)
        outcome = (wished("outcomes") or ".").split()
        record = record_of(trial, outcome[trial.seed % len(outcome)])
        if (delay_s := wished("dies", once=True)) is not None:
            threading.Timer(float(delay_s), os.kill, (os.getpid(), signal.SIGKILL)).start()
        return record.as_json() | {"timings": {"load": 1}}

    def kill(self) -> None:
        """End."""
        self.is_running = False


def stand_in(orders: WorkerOrders, hear: Callable[[str], None], extra: Path | None) -> StandIn:
    """The worker of a host."""
    return StandIn(orders, hear)

"""One worker as the controller sees it: started, handed specs, replaced when it dies."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.campaign.worker import WorkerOrders
from torture.checkout import CHECKOUT
from torture.errors import DeadlineExceeded, HarnessError
from torture.host.sandbox import USER_NAMESPACES_HINT, sandboxed
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord

_START_DEADLINE_S = 60
_END_DEADLINE_S = 10


class WorkerController:
    """A sandboxed worker process. The thread that calls `start` must outlive it: its end is the worker's.

    `tell` hears of stages and remarks.
    """

    def __init__(self, orders: WorkerOrders, *, tell: Callable[[str, str], None]) -> None:
        self._orders = orders
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()

    @property
    def log(self) -> Path:
        """What the worker printed, tracebacks included."""
        return self._orders.scratch.with_suffix(".log")

    @property
    def is_running(self) -> bool:
        """Whether it can be handed a spec."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process and wait until it is ready; raises `HarnessError` when it cannot work."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                sandboxed((sys.executable, "-m", "torture.campaign.worker")),
                cwd=CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answers = queue.Queue()
        threading.Thread(
            target=_pass_on, args=(self._process, self._answers), name="answers", daemon=True
        ).start()
        self._send(self._orders.as_json())
        end = time.monotonic() + _START_DEADLINE_S
        try:
            while (message := self._next(end)).get("say") != "ready":
                if "refused" in message:
                    raise HarnessError(str(message["refused"]))
        except HarnessError:
            self.kill()
            raise

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        """The record of one trial.

        Raises `DeadlineExceeded` when it takes too long and `HarnessError` when the worker dies; the
        worker and all it had started are gone then.
        """
        self._send(spec.as_json())
        end = time.monotonic() + deadline_s
        try:
            while True:
                message = self._next(end)
                if "record" in message:
                    return TrialRecord.from_json(message["record"])
                for kind in ("stage", "say"):
                    if kind in message:
                        self._tell(kind, message[kind])
        except HarnessError:
            self.kill()
            raise

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:  # ended, or closed by `kill`
            raise self._death() from error

    def _next(self, end_s: float) -> dict[str, Any]:
        try:
            message = self._answers.get(timeout=max(0.0, end_s - time.monotonic()))
        except queue.Empty:
            raise DeadlineExceeded("the worker took too long", hint=f"read {self.log}") from None
        if message is None:
            raise self._death()
        return message

    def _death(self) -> HarnessError:
        self.kill()
        said = self.log.read_text(errors="replace").strip().splitlines()[-6:]
        why = "\n".join(said) or "it said nothing"
        refused = any(line.startswith("unshare: ") for line in said)
        hint = USER_NAMESPACES_HINT if refused else f"read {self.log}"
        return HarnessError(f"a worker died: {why}", hint=hint)

    def kill(self) -> None:
        """End the worker and, with its namespaces, everything it started."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(_END_DEADLINE_S)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # what it had not read cannot be written any more
                self._process.stdin.close()


def _pass_on(process: subprocess.Popen[str], answers: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            with contextlib.suppress(ValueError):  # cut off by the worker's death
                answers.put(json.loads(line))
    answers.put(None)

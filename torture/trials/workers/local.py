"""Workers on this host: each is a sandboxed process that receives specs.

A new process replaces a dead one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

from torture.discovery import EXTRA_VARIABLE
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.axes.away import AWAY_STAGE
from torture.files import CHECKOUT
from torture.machines.host.scratch import USER_NAMESPACES_HINT, sandboxed
from torture.machines.lab.lab import Boot
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.trials.workers.protocol import WorkerOrders, WorkerSiteKind

_START_DEADLINE_S = 60
PROBE_DEADLINE_S = 300
"""A machine may have to boot first, to be resumed from then on."""
_LAST_BREATH_S = 2
"""Its answers end a moment before the process does."""
_LINES_MAX = 6
_SHELL_SIGNAL_BASE = 128
_LIBVIRTS = re.compile(r"\d{4}-\d\d-\d\d [\d:.+]+: \d+: (debug|info|warning) : ")
"""The beginning of a line of libvirt's log (src/util/virlog.c, `virLogFormatString`)."""
_END_DEADLINE_S = 10
_TURN_POLL_S = 1.0
_TRIAL_MIB = 1331
"""The memory of a NAS and a client, as measured under emulation."""
_PER_JOB_MAX = 6
"""Trials under way for each one at work: three minutes of waiting to half a minute of work."""
TRIAL_DEADLINE_S = {Boot.WARM: 2100, Boot.COLD: 2700}
"""Enough for the check of a filesystem whose repair is given up (`torture.trials.trial.check`).
Otherwise exactly the trials with a lost filesystem would be inconclusive."""


class LocalSite:
    """The host itself: each worker has a folder of its own below the scratch directory."""

    waits_s = 0.0
    failure = None
    remarks: tuple[str, ...] = ()

    def __init__(self, orders: WorkerOrders) -> None:
        self._orders = orders
        self._room = _room() if orders.waits else 0
        self._turns: threading.Semaphore | None = None

    @property
    def trial_deadline_s(self) -> float:
        """See `WorkerSite`."""
        return TRIAL_DEADLINE_S[self._orders.lab.boot]

    def slots(self, jobs: int) -> frozenset[int]:
        """See `WorkerSite`; as many as the user wishes, and one more for each trial that may wait."""
        if self._orders.waits and self._turns is None:
            self._turns = threading.Semaphore(jobs)
        return frozenset(range(max(jobs, min(self._room, _PER_JOB_MAX * jobs))))

    def controller(self, number: int, *, hear: Callable[[str], None]) -> LocalController:
        """See `WorkerSite`; removes the files of the last worker of this number from its folder."""
        scratch = self._orders.scratch / f"w{number}"
        shutil.rmtree(scratch, ignore_errors=True)
        log = self._orders.run.worker_log(number)
        orders = structs.replace(self._orders, scratch=scratch)
        return LocalController(orders, log=log, hear=hear, turns=self._turns)

    def close(self) -> None:
        """Nothing to release: a worker's end removes everything that it had."""


class LocalController:
    """A sandboxed worker process; it ends with the thread that called `start`.

    Its output, with tracebacks, is appended to `log`. `extra` is the folder of `--extra` where that
    is not this process's. A trial takes one of `turns`, and gives it back while its client waits.
    """

    def __init__(
        self,
        orders: WorkerOrders,
        *,
        log: Path,
        hear: Callable[[str], None],
        extra: Path | None = None,
        turns: threading.Semaphore | None = None,
    ) -> None:
        self._turns = turns
        self._orders = orders
        self._environment = {EXTRA_VARIABLE: str(extra)} if extra else {}
        self._log = log
        self._hear = hear
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()

    @property
    def is_running(self) -> bool:
        """See `WorkerController`."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """See `WorkerController`."""
        self._log.parent.mkdir(mode=0o700, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                sandboxed((sys.executable, "-m", "torture.trials.workers._local_worker")),
                cwd=CHECKOUT,
                env=os.environ | self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # the controller receives Ctrl-C, and ends its workers
            )
        self._answers = queue.Queue()
        threading.Thread(
            target=_pass_on, args=(self._process, self._answers), name="answers", daemon=True
        ).start()
        self._send(self._orders.as_json())
        is_quick = not self._orders.probes
        end = time.monotonic() + (_START_DEADLINE_S if is_quick else PROBE_DEADLINE_S)
        try:
            while (message := self._next(end)).get("say") != "ready":
                if "refused" in message:
                    raise HarnessError(str(message["refused"]))
        except HarnessError:
            self.kill()
            raise

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        """See `WorkerController`."""
        return TrialRecord.from_json(self.run_plain(spec.as_json(), deadline_s=deadline_s))

    def run_plain(self, spec: dict[str, Any], *, deadline_s: float) -> dict[str, Any]:
        """The same with plain data, for a process that need not know the trial's choices."""
        turn = _Turn(self._turns)
        while not turn.take():
            if not self.is_running:
                raise self._death()
        try:
            self._send(spec)
            end = time.monotonic() + deadline_s
            while True:
                message = self._next(end)
                if "record" in message:
                    record: dict[str, Any] = message["record"]
                    return record
                if message.get("stage") == AWAY_STAGE:
                    turn.give_back()
                for kind in ("stage", "say"):
                    if kind in message:
                        self._hear(message[kind])
        except HarnessError:
            self.kill()
            raise
        finally:
            turn.give_back()

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
            raise DeadlineExceeded("the worker took too long", hint=f"read {self._log}") from None
        if message is None:
            raise self._death()
        return message

    def _death(self) -> HarnessError:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):  # a silent one is ended
            self._process.wait(_LAST_BREATH_S)
        how = ending_in_words(self._process.returncode)
        self.kill()
        said = last_words(self._log.read_text(errors="replace"))
        why = (
            "\n".join((f"a worker {how}", *said)) if said else f"a worker {how}, without a message"
        )
        refused = any(line.startswith("unshare: ") for line in said)
        hint = USER_NAMESPACES_HINT if refused else f"read {self._log}"
        return HarnessError(why, hint=hint)

    def kill(self) -> None:
        """See `WorkerController`; the end of its namespaces ends everything in them."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(_END_DEADLINE_S)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # its unread input cannot be written any more
                self._process.stdin.close()


class _Turn:
    """A trial's turn, which it has once at most; without `turns` each trial has one."""

    def __init__(self, turns: threading.Semaphore | None) -> None:
        self._turns = turns
        self._is_taken = False

    def take(self) -> bool:
        """Whether it came within a second."""
        self._is_taken = self._turns is None or self._turns.acquire(timeout=_TURN_POLL_S)
        return self._is_taken

    def give_back(self) -> None:
        """Let another trial begin; does nothing the second time."""
        if self._is_taken and self._turns is not None:
            self._turns.release()
        self._is_taken = False


def _room() -> int:
    """The number of trials for which the host has memory now (proc_meminfo(5))."""
    words = Path("/proc/meminfo").read_text().split()
    return int(words[words.index("MemAvailable:") + 1]) // (_TRIAL_MIB * 1024)


def ending_in_words(code: int | None) -> str:
    """The ending of a process, by its return code; None: it did not end.

    A negative code means a signal (subprocess). A code above 128 means a signal in the sandbox, as
    tini(1) reports it.
    """
    if code is None:
        return "does not answer"
    number = -code if code < 0 else code - _SHELL_SIGNAL_BASE
    try:
        return f"died of {signal.Signals(number).name}"
    except ValueError:
        return f"ended with exit code {code}"


def last_words(log: str) -> list[str]:
    """The last lines of a worker's log, without mere warnings of libvirt."""
    lines = (line for line in log.strip().splitlines() if not _LIBVIRTS.match(line))
    return list(lines)[-_LINES_MAX:]


def _pass_on(process: subprocess.Popen[str], answers: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            with contextlib.suppress(ValueError):  # cut off by the worker's death
                answers.put(json.loads(line))
    answers.put(None)


def _open(orders: WorkerOrders, place: str) -> LocalSite:
    if place:
        raise HarnessError(f"no workers in {place!r}", hint="--workers local is this host")
    return LocalSite(orders)


WORKERS = WorkerSiteKind(name="local", words="on this host", open=_open)

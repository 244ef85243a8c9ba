"""Running many trials on several workers at once, from one queue, so that no core idles."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from torture.campaign.controller import WorkerController
from torture.campaign.run import Run
from torture.campaign.stopping import Settled, Stopping
from torture.campaign.worker import WorkerOrders
from torture.errors import HarnessError
from torture.lab.lab import Boot, LabSettings
from torture.matrix.cells import Cell
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord, append_record
from torture.scoring.score import inconclusive
from torture.stats.sequential import Until
from torture.verdict.guarantee import Guarantee
from torture.verdict.verdicts import Verdict

_TRIAL_DEADLINE_S = {Boot.WARM: 420, Boot.COLD: 900}
_FAILED_STARTS_MAX = 2


class EvidencePolicy(StrEnum):
    """Which trials' evidence folders stay."""

    BAD = "bad"
    """Those worse than guaranteed, and inconclusive ones, and of the others any loss."""
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """What a worker is at, for the live line."""

    trial: str
    stage: str


class Campaign:
    """The trials of one run. `start` returns at once; `wait_for` a cell, then read its records.

    With `until` a cell whose question is answered gets no more trials: those waiting are dropped,
    those under way end and are recorded.
    """

    def __init__(
        self,
        *,
        run: Run,
        specs: Iterable[TrialSpec],
        jobs: int,
        keep: EvidencePolicy,
        lab: LabSettings,
        scratch: Path,
        until: Until | None = None,
    ) -> None:
        self.run = run
        self.jobs = jobs
        self.until = until
        self._keep = keep
        self._lab = lab
        self._scratch = scratch
        self._waiting = deque(specs)
        self._total = len(self._waiting)
        self._stopping_rule = None if until is None else Stopping(until, self._waiting)
        self._changed = threading.Condition()
        self._records: list[TrialRecord] = []
        self._left_of_cell = Counter(spec.cell for spec in self._waiting)
        self._controllers: list[WorkerController] = []
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._workers_left = min(jobs, self._total)
        self._begun_s = self._last_record_s = time.monotonic()
        self._why: HarnessError | None = None
        self._fatal: HarnessError | None = None
        self.states: dict[int, WorkerState] = {}

    @property
    def total(self) -> int:
        """Trials in all, without those that an answered question made needless."""
        return self._total

    @property
    def settled(self) -> dict[Cell, Settled]:
        """The cells whose question is answered, in that order; none without a question."""
        with self._changed:
            return {} if self._stopping_rule is None else dict(self._stopping_rule.settled)

    @property
    def answers(self) -> str:
        """How many cells have answered the question how; empty without a question."""
        with self._changed:
            return "" if self._stopping_rule is None else self._stopping_rule.in_words()

    @property
    def elapsed_s(self) -> float:
        """From the start to the end of the last trial that ended."""
        return self._last_record_s - self._begun_s

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """The records so far, in the order in which the trials ended."""
        with self._changed:
            return tuple(self._records)

    def start(self) -> None:
        """Start the workers."""
        self._begun_s = self._last_record_s = time.monotonic()
        for number in range(self._workers_left):
            thread = threading.Thread(
                target=self._work, args=(number,), name=f"worker-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def wait_for(self, cell: Cell, *, timeout_s: float) -> bool:
        """Wait until every trial of a cell has ended or is needless; False when time passed first.

        Raises `HarnessError` when no worker can work at all.
        """
        with self._changed:
            over = self._changed.wait_for(
                lambda: self._left_of_cell[cell] == 0 or self._fatal is not None, timeout_s
            )
            if self._fatal is not None and self._left_of_cell[cell] > 0:
                raise self._fatal
            return over

    def records_of(self, cell: Cell) -> tuple[TrialRecord, ...]:
        """The records of one cell so far."""
        return tuple(record for record in self.records if record.cell == cell.name)

    def stop(self) -> None:
        """End the workers and everything they started; trials that ran are not recorded."""
        self._stopping = True
        for controller in list(self._controllers):
            controller.kill()
        for thread in self._threads:
            thread.join(timeout=15)

    def _work(self, number: int) -> None:
        """The life of a worker thread: it ends with the queue, or tells why it cannot go on."""
        why: HarnessError | None = None
        try:
            self._work_off(number)
        except HarnessError as error:
            why = error
        except Exception as error:
            # a thread that ended silently would leave the run waiting for ever
            why = HarnessError(f"the run cannot go on: {error!r}", hint="df -h")
        finally:
            self.states.pop(number, None)
            self._leave(why)

    def _work_off(self, number: int) -> None:
        controller: WorkerController | None = None
        try:
            while not self._stopping and (spec := self._next()) is not None:
                try:
                    if controller is None or not controller.is_running:
                        controller = self._started(number)
                except HarnessError:
                    self._give_back(spec)
                    raise
                if self._stopping:
                    return
                record = self._one(number, controller, spec)
                if record.machinery_failed:
                    controller.kill()  # the next trial gets a fresh sandbox
                self._take(spec.cell, record)
        finally:
            if controller is not None:
                controller.kill()

    def _next(self) -> TrialSpec | None:
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def _give_back(self, spec: TrialSpec) -> None:
        """Leave a trial that was not begun to a worker that can, unless it is needless by now."""
        with self._changed:
            self._waiting.appendleft(spec)
            if self._stopping_rule is not None and spec.cell in self._stopping_rule.settled:
                self._drop_waiting(spec.cell)

    def _drop_waiting(self, cell: Cell) -> None:
        """Forget the trials of a cell that nobody has begun; the lock is held."""
        others = deque(spec for spec in self._waiting if spec.cell != cell)
        dropped = len(self._waiting) - len(others)
        self._waiting = others
        self._total -= dropped
        self._left_of_cell[cell] -= dropped
        self._changed.notify_all()

    def _started(self, number: int) -> WorkerController:
        """A new worker; a second try is worth it, a third is not."""
        for _ in range(_FAILED_STARTS_MAX - 1):
            try:
                return self._new_controller(number)
            except HarnessError as error:
                self._hear(number, "say", f"does not start: {error.message}")
        return self._new_controller(number)

    def _new_controller(self, number: int) -> WorkerController:
        scratch = self._scratch / f"w{number}"
        shutil.rmtree(scratch, ignore_errors=True)
        controller = WorkerController(
            WorkerOrders(scratch=scratch, trials=self.run.evidence, lab=self._lab),
            tell=lambda kind, text: self._hear(number, kind, text),
        )
        self._controllers.append(controller)
        controller.start()
        return controller

    def _hear(self, number: int, _kind: str, text: str) -> None:
        if (state := self.states.get(number)) is not None:
            self.states[number] = WorkerState(trial=state.trial, stage=text)

    def _one(self, number: int, controller: WorkerController, spec: TrialSpec) -> TrialRecord:
        self.states[number] = WorkerState(trial=spec.trial, stage="")
        try:
            return controller.run(spec, deadline_s=_TRIAL_DEADLINE_S[self._lab.boot])
        except HarnessError as error:
            folder = self.run.evidence / spec.trial
            text = f"{error}\n  trial: {spec.trial}, evidence: {folder}"
            return inconclusive(spec, error=text, timings={})

    def _take(self, cell: Cell, record: TrialRecord) -> None:
        if self._stopping:
            return
        with self._changed:
            append_record(self.run.trials_file, record)
            self._drop_evidence(record)
            self._records.append(record)
            self._last_record_s = time.monotonic()
            self._left_of_cell[cell] -= 1
            if self._stopping_rule is not None and self._stopping_rule.take(cell, record):
                self._drop_waiting(cell)
            self._changed.notify_all()

    def _drop_evidence(self, record: TrialRecord) -> None:
        is_bad = record.verdict is Verdict.INCONCLUSIVE or record.verdict.is_loss
        is_bad = is_bad or Guarantee(record.guarantee).is_broken_by(
            record.verdict, record.rollback_ms
        )
        if self._keep is EvidencePolicy.ALL or (self._keep is EvidencePolicy.BAD and is_bad):
            return
        shutil.rmtree(self.run.evidence / record.trial, ignore_errors=True)

    def _leave(self, why: HarnessError | None) -> None:
        """A worker ends; the run ends with the last one, though trials may be left."""
        with self._changed:
            self._workers_left -= 1
            self._why = why or self._why
            if self._workers_left == 0 and self._left_of_cell.total() > 0:
                self._fatal = self._why or HarnessError("the run was stopped")
            self._changed.notify_all()

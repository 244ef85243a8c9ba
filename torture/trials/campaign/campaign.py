"""Many trials on several workers at once: a schedule chooses the trials, a site the workers."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.schedules.protocol import Schedule
from torture.trials.campaign.dead_tries import DeadTries
from torture.trials.campaign.reproducer import keep_reproducer
from torture.trials.campaign.run import Run
from torture.trials.workers.protocol import WorkerController, WorkerSite

_FAILED_STARTS_MAX = 2
_JOIN_DEADLINE_S = 15
_POLL_S = 1.0


class EvidencePolicy(StrEnum):
    """The trials whose evidence folders stay."""

    BAD = "bad"
    """Trials worse than guaranteed, inconclusive trials, and any other trial with a loss."""
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """A worker's present work, for the live line."""

    trial: str
    stage: str


class Campaign:
    """The trials of one run. `start` returns at once; `wait_for` a cell, then read its records.

    It keeps the workers and the records. The schedule decides the next trial, and whether a cell
    has enough of them. Every worker has a thread, and this thread must start it. `earlier` are the
    records of a run that goes on; the schedule knows them already.
    """

    def __init__(
        self,
        *,
        run: Run,
        schedule: Schedule,
        site: WorkerSite,
        jobs: int,
        keep: EvidencePolicy,
        earlier: Sequence[TrialRecord] = (),
    ) -> None:
        self.run = run
        self.jobs = jobs
        self._schedule = schedule
        self._site = site
        self._keep = keep
        self._changed = threading.Condition()
        self.earlier = tuple(earlier)
        self._records = [*earlier]
        self._tries = DeadTries(run, zfs=run.zfs)
        self._controllers: list[WorkerController] = []
        self._threads: list[threading.Thread] = []
        self._states: dict[int, WorkerState] = {}
        self._at_work: set[int] = set()
        self._is_stopping = False
        self._workers_left = min(jobs, schedule.total)
        self._begun_s = self._last_record_s = time.monotonic()
        self._why: HarnessError | None = None
        self._fatal: HarnessError | None = None

    @property
    def total(self) -> int:
        """Trials in all, without the trials that proved needless."""
        with self._changed:
            return self._schedule.total

    @property
    def patience_s(self) -> float:
        """The maximum time of the whole: its trials one after the other, and the preparation."""
        return self._site.trial_deadline_s * (self.total + 1)

    @property
    def schedule_in_words(self) -> str:
        """The schedule's remarks on the run so far; may be empty."""
        with self._changed:
            return self._schedule.in_words()

    @property
    def states(self) -> dict[int, WorkerState]:
        """The present work of each worker that has begun a trial, by its number."""
        with self._changed:
            return dict(self._states)

    @property
    def elapsed_s(self) -> float:
        """From the start until the last end of a trial."""
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
                target=self._be_worker, args=(number,), name=f"worker-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def wait_for(self, cell: Cell, *, timeout_s: float) -> bool:
        """Wait until every trial of a cell has ended or is needless; False when time passed first.

        Raises `HarnessError` when no worker can work at all.
        """
        with self._changed:
            over = self._changed.wait_for(
                lambda: self._schedule.is_cell_over(cell) or self._fatal is not None, timeout_s
            )
            if self._fatal is not None and not self._schedule.is_cell_over(cell):
                raise self._fatal
            return over

    def records_of(self, cell: Cell) -> tuple[TrialRecord, ...]:
        """The records of one cell so far."""
        return tuple(record for record in self.records if record.cell == cell.name)

    def stop(self) -> None:
        """End the workers and everything that they started; records no trial under way."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        for controller in list(self._controllers):
            controller.kill()
        for thread in self._threads:
            thread.join(timeout=_JOIN_DEADLINE_S)
        self._site.close()

    def _be_worker(self, number: int) -> None:
        """A thread's whole life: it ends with the schedule, or reports why it cannot go on."""
        why: HarnessError | None = None
        try:
            self._run_trials(number)
        except HarnessError as error:
            why = error
        except Exception as error:
            # a thread that ended silently would make the run wait for ever
            why = HarnessError(f"the run cannot go on: {error!r}", hint="df -h")
        finally:
            self._sign_off(number, why)

    def _run_trials(self, number: int) -> None:
        """Begin one trial after the other, with a new worker where the last worker is gone."""
        controller: WorkerController | None = None
        try:
            while (spec := self._next_spec(number)) is not None:
                try:
                    if controller is None or not controller.is_running:
                        controller = self._started_controller(number)
                except Exception:
                    self._give_back(number, spec)
                    raise
                if self._is_stopping:
                    return
                record = self._record_from(controller, number, spec)
                if record is None:
                    self._give_back(number, spec)
                    continue
                if record.machinery_failed:
                    controller.kill()  # the next trial gets a fresh sandbox
                self._keep_record(number, spec, record)
        finally:
            if controller is not None:
                controller.kill()

    def _next_spec(self, number: int) -> TrialSpec | None:
        """The next trial; None: no more. Waits while trials under way may still cause another."""
        with self._changed:
            while not (self._is_stopping or self._schedule.is_over):
                if (spec := self._schedule.next_spec()) is not None:
                    self._at_work.add(number)
                    return spec
                if not self._at_work:
                    return None
                self._states.pop(number, None)
                self._changed.wait(_POLL_S)
            return None

    def _give_back(self, number: int, spec: TrialSpec) -> None:
        """Leave a trial that did not begin to another worker."""
        with self._changed:
            self._schedule.give_back(spec)
            self._at_work.discard(number)
            self._changed.notify_all()

    def _started_controller(self, number: int) -> WorkerController:
        """A new worker, with two tries: a third rarely helps."""
        for _ in range(_FAILED_STARTS_MAX - 1):
            try:
                return self._new_controller(number)
            except HarnessError as error:
                self._hear(number, f"does not start: {error.message}")
        return self._new_controller(number)

    def _new_controller(self, number: int) -> WorkerController:
        controller = self._site.controller(number, hear=lambda text: self._hear(number, text))
        self._controllers.append(controller)
        controller.start()
        return controller

    def _hear(self, number: int, text: str) -> None:
        with self._changed:
            if (state := self._states.get(number)) is not None:
                self._states[number] = WorkerState(trial=state.trial, stage=text)

    def _record_from(
        self, controller: WorkerController, number: int, spec: TrialSpec
    ) -> TrialRecord | None:
        """Make a worker run a trial; None: its worker died, and it gets another try."""
        with self._changed:
            self._states[number] = WorkerState(trial=spec.trial, stage="")
        if self.run.evidence_of(spec.trial).exists():
            interrupted = HarnessError("the run ended before the trial")
            if (record := self._tries.record_after(spec, interrupted)) is not None:
                return record
        try:
            record = controller.run(spec, deadline_s=self._site.trial_deadline_s)
        except HarnessError as error:
            return None if self._is_stopping else self._tries.record_after(spec, error)
        return self._tries.counted(spec, record)

    def _keep_record(self, number: int, spec: TrialSpec, record: TrialRecord) -> None:
        """Write the record, then inform the schedule; an end while the run stops is no result."""
        if self._is_stopping:
            return
        record = record.with_relative_paths(self.run)
        if record.breaks(Guarantee(record.guarantee)) and not record.fault:
            self._reproduce(number, record)
        with self._changed:
            append_record(self.run.trials_file, record)
            self._drop_evidence(record)
            self._records.append(record)
            self._last_record_s = time.monotonic()
            self._schedule.record_ended(spec, record)
            self._at_work.discard(number)
            self._changed.notify_all()

    def _reproduce(self, number: int, record: TrialRecord) -> None:
        """Keep a folder to hand over; without room for it the trial's own evidence has to do."""
        try:
            keep_reproducer(self.run, record)
        except (OSError, HarnessError) as error:
            self._hear(number, f"no reproducer: {error}")

    def _drop_evidence(self, record: TrialRecord) -> None:
        is_bad = record.verdict is Verdict.INCONCLUSIVE or record.verdict.is_loss
        is_bad = is_bad or bool(record.absence.acknowledged_in_outage)
        is_bad = is_bad or record.breaks(Guarantee(record.guarantee))
        if self._keep is EvidencePolicy.ALL or (self._keep is EvidencePolicy.BAD and is_bad):
            return
        shutil.rmtree(self.run.evidence / record.trial, ignore_errors=True)

    def _sign_off(self, number: int, why: HarnessError | None) -> None:
        """End a worker; the run ends with the last worker, though trials may be left."""
        with self._changed:
            self._states.pop(number, None)
            self._at_work.discard(number)
            self._workers_left -= 1
            self._why = why or self._why
            if self._workers_left == 0 and not self._schedule.is_over:
                over = "was stopped" if self._is_stopping else "ended before its schedule"
                self._fatal = self._why or HarnessError(f"the run {over}")
            self._changed.notify_all()

"""Many trials on several workers at once: a schedule chooses the trials, a site the workers.

The hand-out of trials to workers, and the tries of a trial whose worker died.

It is not thread-safe: its caller holds a lock.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from msgspec.structs import replace

from torture.choices.matrix.cells import Cell
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.linux.kernels import Kernels
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord, Where
from torture.records.record.trials_file import append_record, read_records
from torture.records.schedules.protocol import Schedule
from torture.records.scoring.score import inconclusive, score
from torture.trials.campaign.keeping import EvidencePolicy, keep_reproducer
from torture.trials.campaign.run import Run, stamped
from torture.trials.workers.protocol import WorkerController, WorkerSite


class HandOut:
    """Hands out trials; one whose try died on a worker goes to another one, where there is one."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._died_on: dict[str, set[int]] = {}
        """Trial to the workers on which a try of it died."""

    @property
    def blamed(self) -> set[int]:
        """The workers on which a try of an open trial died."""
        return set[int]().union(*self._died_on.values())

    def next_for(self, number: int, *, workers: Set[int]) -> tuple[TrialSpec | None, bool]:
        """The next trial for this one of the workers, and whether another one is held for others."""
        spec = self._schedule.next_spec()
        if spec is None or not self._is_for_others(spec, number, workers):
            return spec, False
        other = self._schedule.next_spec()
        if other is not None and self._is_for_others(other, number, workers):
            self._schedule.give_back(other)
            other = None
        self._schedule.give_back(spec)
        return other, True

    def give_back(self, spec: TrialSpec, *, died_on: int | None = None) -> None:
        """Take back a trial that did not begin, or whose try died on this worker."""
        if died_on is not None:
            self._died_on.setdefault(spec.trial, set()).add(died_on)
        self._schedule.give_back(spec)

    def forget(self, spec: TrialSpec) -> None:
        """A trial has ended: nothing about its tries matters any more."""
        self._died_on.pop(spec.trial, None)

    def _is_for_others(self, spec: TrialSpec, number: int, workers: Set[int]) -> bool:
        died_on = self._died_on.get(spec.trial, set())
        return number in died_on and bool(workers - died_on)


TRIES_MAX = 3
"""A trial whose worker died so often is inconclusive."""


class DeadTries:
    """Judges the evidence that a dead try left, and counts tries.

    A try is not drawn again by its result. A conclusive record of its evidence stands: known damage
    is conclusive, however early the try ended. So does a breach, e.g. a finding of its audit. Only a
    trial that says nothing yet is begun again, in an empty folder. A trial that took
    too long would take too long again, and is not.
    """

    def __init__(self, run: RunLayout, *, zfs: str, linux: Kernels) -> None:
        self._run = run
        self._zfs = zfs
        self._where = Where(linux_nas=linux.nas, linux_client=linux.client)
        self._died: Counter[str] = Counter()

    def record_after(self, spec: TrialSpec, error: HarnessError) -> TrialRecord | None:
        """The record of a trial whose worker has died; None: it gets another try.

        Raises `OSError` where the evidence of the dead try cannot be removed.
        """
        folder = self._run.evidence_of(spec.trial)
        self._died[spec.trial] += 1
        known = self._known(spec, error)
        is_last = self._died[spec.trial] >= TRIES_MAX or isinstance(error, DeadlineExceeded)
        if known is None and is_last:
            text = f"{error}\n  trial: {spec.trial}, evidence: {folder}"
            known = inconclusive(spec, zfs=self._zfs, error=text, timings={})
        if known is None:
            if folder.exists():
                shutil.rmtree(folder)
            return None
        return replace(known, dead_tries=self._died[spec.trial], where=self._where)

    def counted(self, spec: TrialSpec, record: TrialRecord) -> TrialRecord:
        """The record of a trial that ended, with the number of its tries that did not."""
        return replace(record, dead_tries=self._died[spec.trial])

    def _known(self, spec: TrialSpec, error: HarnessError) -> TrialRecord | None:
        """The record of the dead try's evidence, if that says something."""
        try:
            record = score(self._run.evidence_of(spec.trial), timings={})
        except HarnessError:
            return None
        if not record.is_conclusive and not record.is_breach:
            return None
        return record.with_reason(f"at least that, its try ended early: {error.message}")


_FAILED_STARTS_MAX = 2
_JOIN_DEADLINE_S = 15
_POLL_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """A worker's present work, for the live line."""

    trial: str
    stage: str


class Campaign:
    """The trials of one run. `start` returns at once; `wait_for` a cell, then read its records.

    It keeps the workers and the records. The schedule decides the next trial, and whether a cell
    has enough of them. Every worker has a thread, and this thread must start it. A late one joins.
    `earlier`: records of a run that goes on. `longer_s`: of a task, beyond the site's deadline.
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
        longer_s: float = 0,
    ) -> None:
        self.run = run
        self.jobs = jobs
        self._schedule = schedule
        self._hand_out = HandOut(schedule)
        self._site = site
        self._keep = keep
        self._longer_s = longer_s
        self._changed = threading.Condition()
        self._verdicts = Counter(record.verdict for record in earlier)
        self.earlier = self._verdicts.total()
        """The number of trials that had ended before this process began."""
        self._tries = DeadTries(run, zfs=run.zfs, linux=run.kernels)
        self._controllers: list[WorkerController] = []
        self._threads: dict[int, threading.Thread] = {}
        self._alive: set[int] = set()
        """The numbers of the workers whose threads live."""
        self._slots: frozenset[int] = frozenset()
        """Those that the site has, also without a thread."""
        self._supervisor = threading.Thread(target=self._supervise, name="slots", daemon=True)
        self._states: dict[int, WorkerState] = {}
        self._at_work: set[int] = set()
        self._is_stopping = False
        self._begun_s = self._last_record_s = time.monotonic()
        self._why: HarnessError | None = None
        self._fatal: HarnessError | None = None
        self._is_broken = False
        """Whether no record can be kept any more, e.g. as the disk is full: no other worker helps."""

    @property
    def total(self) -> int:
        """Trials in all, without the trials that proved needless."""
        with self._changed:
            return self._schedule.total

    @property
    def patience_s(self) -> float:
        """The maximum time: the trials one after the other, and the preparation."""
        return (self._site.trial_deadline_s + self._longer_s) * (self.total + 1)

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
        """The records so far, in the order in which the trials ended; read from the run's file."""
        with self._changed:
            return read_records(self.run.trials_file).records

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of ended trials by their verdicts."""
        with self._changed:
            return self._verdicts.copy()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The site's remarks so far, e.g. on a host that is out."""
        return self._site.remarks

    def start(self) -> None:
        """Start the workers."""
        self._begun_s = self._last_record_s = time.monotonic()
        self._start_new_workers()
        self._supervisor.start()

    def _supervise(self) -> None:
        """Start a worker for each slot that joins; end the run when no worker can come any more."""
        seen_s = time.monotonic()
        while True:
            with self._changed:
                if self._is_stopping or self._schedule.is_over or self._fatal is not None:
                    return
                if self._alive and not self._is_broken:
                    seen_s = time.monotonic()
                elif (
                    self._is_broken
                    or self._site.failure is not None
                    or time.monotonic() - seen_s >= self._site.waits_s
                ):
                    ended = HarnessError("the run ended before its schedule")
                    self._fatal = self._site.failure or self._why or ended
                    self._changed.notify_all()
                    return
                self._changed.wait(_POLL_S)
            self._start_new_workers()

    def _start_new_workers(self) -> None:
        """A thread for each new slot, as far as there are trials left."""
        self._slots = self._site.slots(self.jobs)
        for number in sorted(self._slots - self._threads.keys()):
            with self._changed:
                left = self._schedule.total - self._verdicts.total()
                if self._is_stopping or len(self._alive - self._hand_out.blamed) >= left:
                    return
                self._alive.add(number)
            self._threads[number] = threading.Thread(
                target=self._be_worker, args=(number,), name=f"worker-{number}", daemon=True
            )
            self._threads[number].start()

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
        if self._supervisor.is_alive():
            self._supervisor.join(timeout=_JOIN_DEADLINE_S)
        for thread in self._threads.values():
            thread.join(timeout=_JOIN_DEADLINE_S)
        with self._changed:
            if not self._schedule.is_over:
                self._fatal = self._fatal or self._why or HarnessError("the run was stopped")
        self._site.close()

    def _be_worker(self, number: int) -> None:
        """Run trials until the schedule ends, or report why this thread cannot go on."""
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
                    self._give_back(number, spec, has_died=True)
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
                workers = self._alive | (self._slots - self._threads.keys())
                spec, is_held = self._hand_out.next_for(number, workers=workers)
                if spec is not None:
                    self._at_work.add(number)
                    return spec
                if not (self._at_work or is_held):
                    return None
                self._states.pop(number, None)
                self._changed.wait(_POLL_S)
            return None

    def _give_back(self, number: int, spec: TrialSpec, *, has_died: bool = False) -> None:
        """Leave a trial that did not begin, or whose try died, to another worker."""
        with self._changed:
            self._hand_out.give_back(spec, died_on=number if has_died else None)
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
            deadline_s = self._site.trial_deadline_s + spec.task.longer_s
            record = controller.run(spec, deadline_s=deadline_s)
        except HarnessError as error:
            is_over = self._is_stopping or self._site.failure is not None
            return None if is_over else self._tries.record_after(spec, error)
        except OSError as error:  # of the evidence that came with the record
            raise self._broken_by(error) from error
        return self._tries.counted(spec, record)

    def _keep_record(self, number: int, spec: TrialSpec, record: TrialRecord) -> None:
        """Write the record, then inform the schedule; an end while the run stops is no result."""
        if self._is_stopping:
            return
        record = stamped(record).with_relative_paths(self.run)
        if record.breaks(Guarantee(record.guarantee)) and not record.fault:
            self._reproduce(number, record)
        with self._changed:
            try:
                append_record(self.run.trials_file, record)
            except OSError as error:
                raise self._broken_by(error) from error
            if not self._keep.keeps(record):
                shutil.rmtree(self.run.evidence / record.trial, ignore_errors=True)
            self._verdicts[record.verdict] += 1
            self._last_record_s = time.monotonic()
            self._schedule.record_ended(spec, record)
            self._hand_out.forget(spec)
            self._at_work.discard(number)
            self._changed.notify_all()

    def _broken_by(self, error: OSError) -> HarnessError:
        """The run ends at once: trials under way may take minutes, and could not be kept either."""
        self._why = HarnessError(f"the run cannot go on: {error!r}", hint="df -h")
        self._is_broken = True
        return self._why

    def _reproduce(self, number: int, record: TrialRecord) -> None:
        """Keep a folder to hand over; where that fails, the trial's own evidence has to do."""
        try:
            keep_reproducer(self.run, record)
        except Exception as error:
            # whatever it is: the loss has to be recorded
            self._hear(number, f"no reproducer: {error}")

    def _sign_off(self, number: int, why: HarnessError | None) -> None:
        """End a worker; the run ends with the last worker, though trials may be left."""
        with self._changed:
            self._states.pop(number, None)
            self._at_work.discard(number)
            self._alive.discard(number)
            self._why = why or self._why
            self._changed.notify_all()

"""The hand-out of trials to workers, and the tries of a trial whose worker died.

It is not thread-safe: its caller holds a lock.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Set

from msgspec.structs import replace

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.linux.kernels import Kernels
from torture.records.record.run_layout import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord, Where
from torture.records.schedules.protocol import Schedule
from torture.records.scoring.score import inconclusive, score


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

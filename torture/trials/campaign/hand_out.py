"""The hand-out of a schedule's trials to workers. It is not thread-safe: its caller holds a lock."""

from __future__ import annotations

from collections.abc import Set

from torture.records.record.specs import TrialSpec
from torture.records.schedules.protocol import Schedule


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

"""Passes over a row: enough of them, and no needless ones, in whichever order they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suites.selftest.unit.measured_records import measured_job, measured_record
from suites.speed.narrowing import NarrowingSchedule, is_narrow
from suites.speed.questions import R4, cell_of
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.protocol import Schedule
from torture.records.tasks.measure_task import MeasureOrder
from torture.trials.campaign.continued import settle
from torture.trials.plan.draw import draw_measured

_NARROW, _WIDE = R4.rows[0], R4.rows[1]
_PASSES = 4


def _record(spec: TrialSpec, times_ms: Sequence[float], *, share: float = 0.02) -> TrialRecord:
    """A pass whose rounds took these times."""
    assert isinstance(spec.task, MeasureOrder)
    jobs = [
        measured_job(ms, link="", number=number, share=share) for number, ms in enumerate(times_ms)
    ]
    record = measured_record(spec.cell.name, jobs, device=spec.task.device)
    return replace(record, trial=spec.trial)


def _specs() -> tuple[TrialSpec, ...]:
    rows = [row for _ in range(_PASSES) for row in (_NARROW, _WIDE)]
    return draw_measured([(cell_of(row), row.order) for row in rows], run_seed=1)


def _ends(spec: TrialSpec) -> TrialRecord:
    assert isinstance(spec.task, MeasureOrder)
    is_narrow_row = spec.task.device == _NARROW.order.device
    return _record(spec, (10, 10.1) if is_narrow_row else (10, 30))


def _schedule() -> NarrowingSchedule:
    return NarrowingSchedule(_specs(), [_NARROW, _WIDE], passes_least=2)


def _play(schedule: Schedule, *, at_most: int = 100) -> list[tuple[TrialSpec, TrialRecord]]:
    played: list[tuple[TrialSpec, TrialRecord]] = []
    while len(played) < at_most and (spec := schedule.next_spec()) is not None:
        record = _ends(spec)
        schedule.record_ended(spec, record)
        played.append((spec, record))
    return played


def _devices(played: Sequence[tuple[TrialSpec, TrialRecord]]) -> list[str]:
    return [spec.task.device for spec, _ in played if isinstance(spec.task, MeasureOrder)]


def test_a_narrow_row_ends_after_the_least_passes_and_a_wide_one_uses_them_all() -> None:
    schedule = _schedule()
    devices = _devices(_play(schedule))
    assert devices.count(_NARROW.order.device) == 2
    assert devices.count(_WIDE.order.device) == _PASSES
    assert (schedule.total, schedule.is_over) == (2 + _PASSES, True)


@pytest.mark.parametrize("ended", range(2 + _PASSES))
def test_an_interrupted_run_goes_on_to_the_same_passes(ended: int) -> None:
    before = _play(_schedule(), at_most=ended)
    schedule = _schedule()
    settle(schedule, [record for _, record in before])
    after = _play(schedule)
    whole = _play(_schedule())
    assert [spec for spec, _ in (*before, *after)] == [spec for spec, _ in whole]
    assert schedule.is_over


def test_a_figure_of_the_emulator_asks_for_no_more_passes() -> None:
    spec = _specs()[1]
    wide = (10, 30, 10, 30)
    assert not is_narrow(_WIDE, [_record(spec, wide)])
    assert is_narrow(_WIDE, [_record(spec, wide, share=0.5)])


def test_two_rounds_are_never_narrow() -> None:
    """They have no interval."""
    assert not is_narrow(_WIDE, [_record(_specs()[1], (10, 10))])

"""A schedule that has the last drawn trial run first."""

from __future__ import annotations

from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder


def _order(asked: str) -> ScheduleOrder:
    return ScheduleOrder(make=lambda specs: FixedSchedule(specs[::-1]), text=asked)


SCHEDULE = ScheduleKind(name="backwards", words="the last drawn first", order=_order)

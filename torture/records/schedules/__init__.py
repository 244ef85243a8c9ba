"""The choice of the next trial, and of a cell's end: one file a schedule. Pure."""

from __future__ import annotations

from dataclasses import replace

from torture.discovery import offered
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder


def schedule_kinds() -> dict[str, ScheduleKind]:
    """Every schedule that has a file, by its name."""
    kinds: tuple[ScheduleKind, ...] = offered(__name__, "SCHEDULE")
    return {kind.name: kind for kind in kinds}


def order_of(text: str) -> ScheduleOrder:
    """The schedule that `NAME` or `NAME:QUESTION` asks for.

    Raises `ValueError` that names the mistake.
    """
    name, _, asked = text.partition(":")
    kinds = schedule_kinds()
    if name not in kinds:
        raise ValueError(f"there is no schedule {name!r}, but {', '.join(kinds)}")
    return replace(kinds[name].order(asked), text=text)

"""The tasks of trials: one file a task, found by its tag."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from typing import Any

from torture.discovery import offered
from torture.facts.evidence.documents import plainly, strictly
from torture.facts.evidence.folder import Part
from torture.records.tasks.protocol import Task


def kinds() -> tuple[type[Task], ...]:
    """Every kind of task."""
    return offered(__name__, "TASK")


def task_of(data: Any) -> Task:
    """The task of `as_json`'s data. Raises `ValueError` for another."""
    task: Task = strictly(reduce(or_, kinds()), data)
    return task


def left_by_task(spec: Mapping[str, Any]) -> type[Part] | None:
    """The evidence that the task of a spec leaves; None where it leaves none, or is unknown."""
    try:
        return task_of(spec["task"]).leaves
    except (KeyError, ValueError):
        return None


@cache
def drawn_origins() -> dict[str, type[Task]]:
    """The origins of drawn trials beside live ones, with their tasks."""
    return {kind.origin: kind for kind in kinds() if kind.origin}


def as_json(task: Task) -> dict[str, Any]:
    """The task as plain data; `task_of` takes it back."""
    return plainly(task)

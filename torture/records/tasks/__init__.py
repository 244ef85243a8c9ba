"""The tasks of trials: one file a task, found by its tag."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from torture.discovery import offered
from torture.facts.evidence.documents import plainly, strictly
from torture.records.tasks.protocol import Task


def task_of(data: Any) -> Task:
    """The task of `as_json`'s data. Raises `ValueError` for another."""
    task: Task = strictly(reduce(or_, offered(__name__, "TASK")), data)
    return task


def document_of(spec: Mapping[str, Any]) -> str:
    """The evidence that the task of a spec leaves; empty where it leaves none, or is unknown."""
    try:
        return task_of(spec["task"]).document
    except (KeyError, ValueError):
        return ""


def as_json(task: Task) -> dict[str, Any]:
    """The task as plain data; `task_of` takes it back."""
    return plainly(task)

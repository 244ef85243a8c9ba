"""The tasks of trials: one file a task, found by its tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torture.discovery import offered
from torture.facts.evidence.documents import strictly
from torture.records.tasks.protocol import Task

_TAG = "kind"


def task_of(data: Mapping[str, Any]) -> Task:
    """The task of `as_json`'s data. Raises `ValueError` for another."""
    known: dict[str, type[Task]] = {task.kind: task for task in offered(__name__, "TASK")}
    kind = data.get(_TAG)
    if kind not in known:
        raise ValueError(f"there is no task {kind!r}, but {', '.join(sorted(known))}")
    return strictly(known[kind], {name: part for name, part in data.items() if name != _TAG})


def document_of(spec: Mapping[str, Any]) -> str:
    """The evidence that the task of a spec leaves; empty where it leaves none, or is unknown."""
    try:
        return task_of(spec["task"]).document
    except (KeyError, ValueError, AttributeError):
        return ""


def as_json(task: Task) -> dict[str, Any]:
    """The task as plain data; `task_of` takes it back."""
    return {_TAG: task.kind} | asdict(task)

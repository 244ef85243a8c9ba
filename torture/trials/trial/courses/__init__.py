"""The course of each task, from its first machine to its last evidence: one file a task."""

from __future__ import annotations

from torture.discovery import offered
from torture.records.tasks.protocol import Task
from torture.trials.trial.courses.protocol import Course


def course_of(task: Task) -> Course:
    """The course of a task."""
    courses: tuple[Course, ...] = offered(__name__, "COURSE")
    return next(course for course in courses if course.task is type(task))

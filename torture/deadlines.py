"""Bounded polling for a condition; waits of other kinds have their own deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from torture.errors import DeadlineExceeded

T = TypeVar("T")


def wait_for(
    probe: Callable[[], T | None],
    *,
    what: str,
    deadline_s: float,
    poll_s: float = 0.02,
    poll_max_s: float = 0.25,
    hint: str = "",
) -> T:
    """The first result of `probe` that is not None; the pause between tries doubles up to a bound.

    Raises `DeadlineExceeded` after `deadline_s`, and every exception of `probe`.
    """
    end = time.monotonic() + deadline_s
    pause_s = poll_s
    while True:
        result = probe()
        if result is not None:
            return result
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceeded(f"no {what} within {deadline_s:g} s", hint=hint)
        time.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 2, poll_max_s)


def truth(value: object) -> bool | None:
    """True or None, the form in which `wait_for` takes a yes-or-no question."""
    return True if value else None


def wait_until_true(reached: Callable[[], bool], *, deadline_s: float, poll_s: float) -> bool:
    """Wait until a condition holds; False when the deadline passed first."""
    end = time.monotonic() + deadline_s
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(poll_s)
    return True

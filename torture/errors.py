"""The one exception of the engine: the machinery failed, which proves nothing about the data."""

from __future__ import annotations


class HarnessError(Exception):
    """The machinery failed, so the trial is inconclusive.

    It never reports corruption, which is a verdict. `hint` is the next step or the next command to
    type; it is printed after the message.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.hint}" if self.hint else self.message


class DeadlineExceeded(HarnessError):
    """An expected event did not come in time."""

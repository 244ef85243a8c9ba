"""The answer of a parser that cannot tell: its trial is inconclusive, neither safe nor a loss."""

from __future__ import annotations


class UnreadableError(Exception):
    """Output that is missing, cut off or garbled; the message says what and why."""


class DidNotWork(UnreadableError):
    """A tool was not let do its work, or not to its end: what was there is not what stopped it."""

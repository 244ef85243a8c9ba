"""The answer of a parser to unclear output: its trial is inconclusive, neither safe nor a loss."""

from __future__ import annotations


class UnreadableError(Exception):
    """Output that is missing, cut off or garbled; the message names the output and the fault."""


class DidNotWork(UnreadableError):
    """A tool could not do its work, or not to its end: the data did not stop it."""

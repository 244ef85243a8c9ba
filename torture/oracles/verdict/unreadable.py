"""The answer of a parser to unclear output: its trial is inconclusive, neither safe nor a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torture.facts.evidence.strict_json import strict_json

_Readback = TypeVar("_Readback")
_Answer = TypeVar("_Answer")


class UnreadableError(Exception):
    """Output that is missing, cut off or garbled; the message names the output and the fault."""


class DidNotWork(UnreadableError):
    """A tool could not do its work, or not to its end: the data did not stop it."""


def read_whole(text: str, read: Callable[[Any], _Readback]) -> _Readback:
    """The read-back in a stored document; raises `UnreadableError` for a cut-off or garbled one."""
    try:
        raw = strict_json(text.encode(errors="replace"))
        if raw["complete"] is not True:
            raise UnreadableError("the read-back does not say that it is complete")
        return read(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableError(f"the read-back cannot be read: {error!r}") from error


def answer_of(question: Callable[[], _Answer]) -> tuple[_Answer | None, tuple[str, ...]]:
    """The answer; or None, and why the evidence gives none."""
    try:
        return question(), ()
    except UnreadableError as error:
        return None, (str(error),)
    except RecursionError:
        return None, ("the output or read-back is nested too deeply",)

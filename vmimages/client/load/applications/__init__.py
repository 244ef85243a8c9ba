"""What people run on their disks, as writers of the load: an application is one module of its name.

Its transactions are announced to the host before they begin, and acknowledged once the application
said that they are done, like the load's own operations: see `load.write`.
"""

from __future__ import annotations

import errno
from importlib import import_module

from ..plan import Dice
from ..storage import ms_since

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TRANSACTION = "transaction"
"""Durable once it returned."""
LAZY_TRANSACTION = "lazy-transaction"
"""Whole or not at all; durable at the latest once a later `TRANSACTION` of the same writer returned."""


class Transaction:
    """What a writer does next; `what` is plain data, for the host and for whoever performs it."""

    __slots__ = ("kind", "what")

    def __init__(self, *, kind: str, what: dict[str, Any]) -> None:
        self.kind = kind
        self.what = what

    @property
    def is_durable(self) -> bool:
        """Whether its end is an acknowledgement."""
        return self.kind == TRANSACTION

    def announced(self) -> dict[str, object]:
        """What the host is told of it; it is in none of the load's own files."""
        return {"op": self.kind, "what": self.what, "file": 0, "blocks": (), "size": 0}


class TransactionPlanner:
    """Draws one writer's transactions; writers of applications do not take turns."""

    is_new_phase = False

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        self.writer = writer
        self.dice = Dice(job["seed"] ^ (writer * 0xD1B54A32D192ED03))

    def draw(self) -> Transaction:
        """The next transaction."""
        raise NotImplementedError


class Performer:
    """Carries out one writer's transactions."""

    def __init__(self) -> None:
        self.step = ""
        self.sync_ms: list[float] = []

    def perform(self, transaction: Transaction, seq: int) -> None:
        """Return once it is as durable as its kind says; raises `OSError`."""
        raise NotImplementedError

    def take_times(self) -> tuple[list[float], float]:
        """`sync_ms` since the last time this was asked; nobody thinks here."""
        taken, self.sync_ms = self.sync_ms, []
        return taken, 0.0

    def durable_call_took(self, begun_ns: int) -> None:
        """A call that made something durable began then, and has returned."""
        self.sync_ms.append(ms_since(begun_ns))


class Application:
    """One application in the guest, for one job."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.directory: str = job["directory"]

    def prepare(self) -> None:
        """Make what must be there before the load; whoever asked has it synced."""

    def begin(self) -> None:
        """Start what serves the writers, if something does."""

    def planner(self, writer: int) -> TransactionPlanner:
        """What this writer draws from."""
        raise NotImplementedError

    def performer(self, writer: int) -> Performer:
        """What carries out its transactions."""
        raise NotImplementedError

    def end(self) -> None:
        """End what `begin` started."""

    def read(self) -> dict[str, Any]:
        """What is there, judging nothing: see `found`."""
        raise NotImplementedError


def found(
    *,
    whole: list[int],
    parts: dict[int, str] | None = None,
    complaints: list[str] | None = None,
    refused: str = "",
    log: list[str] | None = None,
    unfinished: list[dict[str, Any]] | None = None,
    unchecked: list[str] | None = None,
) -> dict[str, Any]:
    """A read-back, as plain data.

    Transactions that are there as they were written, and those that are otherwise, with what is wrong;
    what the application's own checks complain of; why it does not start, if it does not; what it logged
    meanwhile, which is for people; what it was in the midst of, as `amid` has it; which of the checks
    did not end.
    """
    return {
        "whole": whole,
        "parts": {str(seq): text for seq, text in (parts or {}).items()},
        "complaints": complaints or [],
        "refused": refused,
        "log": log or [],
        "unfinished": unfinished or [],
        "unchecked": unchecked or [],
    }


def amid(
    seq: int, *, what: dict[str, object], state: str, is_new: bool, is_old: bool
) -> dict[str, Any]:
    """What an application was in the midst of, as plain data.

    `is_new`: it may be the transaction `seq` itself that was under way. `is_old`: it may be the next one
    that says the same `what` of itself, and `seq` is what is there until that has ended.
    """
    return {"seq": seq, "what": what, "state": state, "is_new": is_new, "is_old": is_old}


def found_of_each(
    writers: int,
    read_one: Callable[[int, list[int], dict[int, str], list[str]], None],
    *,
    noun: str,
    errors: tuple[type[Exception], ...],
    unfinished: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A read-back of what writers keep each for itself: a `noun` that cannot be read is refused.

    `read_one` adds what a writer's shows to `whole`, `parts` and `complaints`, and to a list of its own
    what was `unfinished`; see `found`.
    """
    whole: list[int] = []
    parts: dict[int, str] = {}
    complaints: list[str] = []
    refused: list[str] = []
    for writer in range(writers):
        try:
            read_one(writer, whole, parts, complaints)
        except errors as error:
            refused.append(f"{noun} {writer}: {type(error).__name__}: {error}")
    return found(
        whole=sorted(whole),
        parts=parts,
        complaints=complaints,
        refused="; ".join(refused),
        unfinished=unfinished,
    )


class ApplicationError(OSError):
    """An application that fails in a writer's hands: evidence about the NAS, not a fault of the load."""

    def __init__(self, said: str) -> None:
        super().__init__(errno.EIO, said)


def application_of(job: dict[str, Any]) -> Application:
    """The application that a job names; `ModuleNotFoundError` when there is no such module."""
    module = import_module(f".{job['application']}", __package__)
    made: Application = module.APPLICATION(job)
    return made

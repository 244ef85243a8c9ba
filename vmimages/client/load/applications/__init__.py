"""Applications that people run on their disks, as writers of the load: each is a module of its name.

The load announces their transactions to the host before they start. It acknowledges them once the
application has reported their end, like the load's own operations: see `load.write`.
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
"""Whole or absent; durable at the latest once a later `TRANSACTION` of the same writer returned."""


class Transaction:
    """A writer's next transaction; `what` is plain data, for the host and for the performer."""

    __slots__ = ("kind", "what")

    def __init__(self, *, kind: str, what: dict[str, Any]) -> None:
        self.kind = kind
        self.what = what

    @property
    def is_durable(self) -> bool:
        """Whether its end is an acknowledgement."""
        return self.kind == TRANSACTION

    def announced(self) -> dict[str, object]:
        """Its announcement to the host; it is in none of the load's own files."""
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
        """`sync_ms` since the last call; applications do not think."""
        taken, self.sync_ms = self.sync_ms, []
        return taken, 0.0

    def durable_call_took(self, begun_ns: int) -> None:
        """Record the time of a call that made data durable, started at `begun_ns`."""
        self.sync_ms.append(ms_since(begun_ns))


class Application:
    """One application in the guest, for one job."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.directory: str = job["directory"]

    def prepare(self) -> None:
        """Make everything needed before the load; the caller has it synced."""

    def begin(self) -> None:
        """Start the application's server, if it has one."""

    def planner(self, writer: int) -> TransactionPlanner:
        """The planner of this writer's transactions."""
        raise NotImplementedError

    def performer(self, writer: int) -> Performer:
        """The performer of this writer's transactions."""
        raise NotImplementedError

    def end(self) -> None:
        """End the server that `begin` started."""

    def read(self) -> dict[str, Any]:
        """Read everything back, judging nothing: see `found`."""
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

    - transactions that are there as they were written
    - transactions that differ, with the difference
    - the complaints of the application's own checks
    - why it does not start, if it does not
    - its log of this time, for people to read
    - its unfinished work, in the form of `unfinished_work`
    - which of the checks did not end
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


def unfinished_work(
    seq: int, *, what: dict[str, object], state: str, is_new: bool, is_old: bool
) -> dict[str, Any]:
    """An unfinished piece of an application's work, as plain data.

    `is_new`: the transaction `seq` itself may have been in flight. `is_old`: the next transaction
    with the same `what` may have been in flight, and `seq` is there until that one has ended.
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
    """A read-back of data that each writer keeps separately: an unreadable `noun` is refused.

    `read_one` adds a writer's findings to `whole`, `parts` and `complaints`, and to a list of its
    own those that were `unfinished`; see `found`.
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
    """An application that fails in a writer's hands: evidence about the NAS, not an error of the load."""

    def __init__(self, said: str) -> None:
        super().__init__(errno.EIO, said)


def application_of(job: dict[str, Any]) -> Application:
    """The application that a job names; `ModuleNotFoundError` when there is no such module."""
    module = import_module(f".{job['application']}", __package__)
    made: Application = module.APPLICATION(job)
    return made

"""The program in the guest that writes and is acknowledged: `vmimages/client/load`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from torture.choices.workloads.protocol import Command, Guest, LedgerChannel, Surroundings, Workload
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import PORT_NAME
from torture.oracles.verdict.guarantee import Terms, UnreadableError
from torture.oracles.verdict.repeated_requests import whole_ledger

PORT = f"/dev/virtio-ports/{PORT_NAME}"
"""Where the guest finds the host."""
LOAD_LIFE_MS = 600_000
"""The host ends the load; this limit is only for a load whose host is gone."""

_HELLO_DEADLINE_S = 120
"""A database server takes 10 s to start, under emulation on a loaded host much longer."""
_GUEST_LOAD = "python3 -S -m load"
_GUEST_CODE = "/opt/torture"


def _command(verb: str, argument: str) -> Command:
    script = f'cd {_GUEST_CODE} && exec {_GUEST_LOAD} {verb} "$1"'
    return ("sh", "-c", script, "load", argument)


class GuestLoad:
    """The load in one client, from its start to its end."""

    def __init__(self, *, guest: Guest, ledger: LedgerChannel, argv: Command) -> None:
        self._guest = guest
        self._ledger = ledger
        self._argv = argv
        self._pid = 0

    @property
    def begun(self) -> int:
        """Operations announced so far."""
        return self._ledger.begun

    @property
    def acknowledged(self) -> int:
        """Durable operations acknowledged so far."""
        return self._ledger.acknowledged

    @property
    def is_over(self) -> bool:
        """Whether every writer has ended or failed."""
        return self._ledger.ended

    def start(self) -> None:
        """Start the writers and wait until the first operation was acknowledged."""
        self._pid = self._guest.start(self._argv)
        end = time.monotonic() + _HELLO_DEADLINE_S
        while not self._ledger.wait_until(lambda: self.acknowledged > 0, deadline_s=1):
            self._raise_if_ended("the load does not begin")
            if time.monotonic() > end:
                raise DeadlineExceeded(f"nothing was acknowledged within {_HELLO_DEADLINE_S} s")

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when the load ended before the cut."""
        if self._ledger.ended or self._ledger.failed:
            self._raise_if_ended("the load ended too early")
            raise HarnessError("a writer of the load failed before anything was cut")

    def _raise_if_ended(self, what: str) -> None:
        if (done := self._guest.poll(self._pid, self._argv)) is not None:
            raise HarnessError(f"{what}: {done.exit_code}: {done.stdout}{done.stderr}")

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait for the ledger to reach a state; False when the deadline passed first."""
        return self._ledger.wait_until(reached, deadline_s=deadline_s)

    def take_ending(self) -> None:
        """Nothing: the ledger has everything that the load reported."""

    def finish(self, *, deadline_s: float) -> None:
        """Stop the writers; at the deadline, a writer that hangs in the kernel stays there."""
        self._ledger.stop_load()
        self._guest.finish(self._pid, self._argv, deadline_s=deadline_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class GuestWorkload(Workload):
    """The common part of workloads whose program in the guest is that one."""

    keeps_ledger: bool = True

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> GuestLoad:
        """Start the writers and return once the first durable operation was acknowledged."""
        argv = guest_command("write", job)
        load = GuestLoad(guest=surroundings.guest, ledger=surroundings.open_ledger(), argv=argv)
        load.start()
        return load

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that makes it print all its data."""
        return guest_command("read", job)


def guest_command(verb: str, job: dict[str, Any]) -> Command:
    """The command that prepares, writes or reads back in the guest."""
    return _command(verb, json.dumps(job))


READ_BACK_SERVER = _command("serve", PORT)
"""The command of the program that reads back for as long as the host asks, over its port."""


def job_read_back_by(command: Command) -> str | None:
    """The job of a command that reads back, as a line for `READ_BACK_SERVER`; None for others."""
    *words, job = command
    return job if (*words, job) == _command("read", job) else None


class _OfATrial(Protocol):
    @property
    def trial(self) -> int: ...

    @property
    def mode(self) -> str: ...


_ReadBack = TypeVar("_ReadBack", bound=_OfATrial)


def read_of(
    evidence: Evidence, terms: Terms, document: str, *, parse: Callable[[str], _ReadBack]
) -> _ReadBack:
    """The read-back of the trial whose load the ledger introduces; raises `UnreadableError`."""
    hello = whole_ledger(evidence, terms)
    if document not in evidence.readbacks:
        raise UnreadableError(f"there is no read-back: {document} is missing")
    found = parse(evidence.readbacks[document])
    if (found.trial, found.mode) != (hello.trial, hello.mode):
        raise UnreadableError(f"{document} is of another trial than the ledger")
    return found

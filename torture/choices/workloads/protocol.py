"""What a workload has to say: start, what was acknowledged, stop, read back, judge.

A workload knows no machine. It is given a guest to run commands in and, if it asks for it, the
ledger: the channel over which what the client is told leaves it before the cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.data_findings import Findings
from torture.oracles.verdict.terms import Terms

Command = tuple[str, ...]

CLIENT_IMAGE = "client"
"""What a client boots that needs nothing of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Brought:
    """A file of the user's own, for the load of this name: where it was, and what it held."""

    load: str
    path: str
    sha256: str
    text: str = ""
    """All of it, where the load is told that; such a file is not needed again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a workload works in the client: in a directory, or on a bare device; one of the two.

    And what the user brought for it. `names_are_stable`: as in the cell's terms.
    """

    directory: str | None = None
    device: str | None = None
    names_are_stable: bool = False
    brought: tuple[Brought, ...] = ()

    def brought_for(self, load: str, *, option: str) -> Brought:
        """What this load cannot do without; raises `HarnessError`, which names the option."""
        found = next((brought for brought in self.brought if brought.load == load), None)
        if found is None:
            raise HarnessError(f"the load {load} takes a file of yours", hint=f"say {option}")
        return found


class Guest(Protocol):
    """Commands in the client, as the guest agent runs them (`torture.machines.lab.agent.Agent`)."""

    def start(self, argv: Command) -> int:
        """Start a command and return its process id there."""

    def poll(self, pid: int, argv: Command) -> Completed | None:
        """What a started command came to, None while it runs."""

    def finish(self, pid: int, argv: Command, *, deadline_s: float) -> Completed:
        """Wait for a started command; at its deadline it is killed."""

    def put_program(self, path: str, content: bytes) -> None:
        """A file that can be run, where there is room for it."""


class LedgerChannel(Protocol):
    """What the host has heard (`torture.machines.client.ledger_server.LedgerServer`)."""

    begun: int
    acknowledged: int
    failed: int
    ended: bool

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait for the ledger to reach a state; False when the deadline passed first."""

    def stop_load(self) -> None:
        """Ask the guest's writers to finish what they are doing and end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a trial gives a workload."""

    guest: Guest
    open_ledger: Callable[[], LedgerChannel]
    """The client's ledger, kept by the host from the first call on."""
    keep: Callable[[Completed], None]
    """Keep as evidence what a load printed when it ended."""
    content_of: Callable[[Brought], bytes]
    """What the user brought; raises `HarnessError` when it is no longer there as it was."""


class RunningLoad(Protocol):
    """A workload at work in one client."""

    @property
    def begun(self) -> int:
        """Operations begun so far, for a cut that aims at one."""

    @property
    def acknowledged(self) -> int:
        """Durable operations that the client was told are done."""

    @property
    def is_over(self) -> bool:
        """Whether it ended by itself: nothing more will be acknowledged."""

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when it ended, or a writer failed, before anyone cut anything."""

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true of this load; False when the deadline passed first."""

    def take_ending(self) -> None:
        """Keep as evidence how it ended, if it ended by itself: its client is about to die."""

    def finish(self, *, deadline_s: float) -> None:
        """Have it end; what hangs in the client's kernel is left there at the deadline."""


class Workload(Protocol):
    """A load, and how what became of it is told."""

    @property
    def name(self) -> str:
        """The choice's name."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the workloads that run in the same trial; they share one disk, and no ledger."""

    @property
    def needs_files(self) -> bool:
        """Whether it cannot work on a bare device."""

    @property
    def needs_inodes(self) -> bool:
        """Whether it looks at modes, and at the numbers of inodes to tell two names of one file."""

    @property
    def keeps_ledger(self) -> bool:
        """Whether its acknowledgements are in the client's ledger."""

    @property
    def can_ignore_read_errors(self) -> bool:
        """Whether `judge` heeds `Evidence.ignores_read_errors`."""

    @property
    def image(self) -> str:
        """The guest image that its client boots; `CLIENT_IMAGE` unless that lacks what it runs."""

    @property
    def readback(self) -> str:
        """The document of the evidence that its read-back becomes."""

    @property
    def readback_after_repair(self) -> str:
        """The same, after fsck's repair."""

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """What the guest is told: plain data, kept in `spec.json`."""

    def prepare(self, job: dict[str, Any]) -> str:
        """Shell, run in the client once its disk is ready: what must be durable before the load."""

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> RunningLoad:
        """Start it and return once something was acknowledged; raises `HarnessError`."""

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads everything back in a guest and prints it as one document."""

    def prints_due(self, *, ended: bool) -> int:
        """How many outputs it has left as evidence (`Step.CLIENT_LOAD`).

        `ended`: its client let it end.
        """

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """What became of what was acknowledged; raises `UnreadableError` where it cannot be told."""

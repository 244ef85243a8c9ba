"""The duties of a workload: start, count acknowledgements, stop, read back, judge.

A workload knows no machine. The trial gives it a guest to run commands in. On request the trial
also gives it the ledger: the channel over which acknowledgements leave the client before the cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torture.errors import HarnessError
from torture.facts.evidence.folder import Completed, Evidence
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.judgement import Findings

Command = tuple[str, ...]

CLIENT_IMAGE = "client"
"""The image of a client that needs no programs of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Brought:
    """A file of the user's own, for the load of this name: its path and its content."""

    load: str
    path: str
    sha256: str
    text: str = ""
    """The whole content, where the load receives it; then the file is not needed again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The workload's place in the client: a directory or a bare device, one of the two.

    It also has the user's files for the workload. `names_are_stable`: as in the cell's terms.
    """

    directory: str | None = None
    device: str | None = None
    names_are_stable: bool = False
    brought: tuple[Brought, ...] = ()

    def brought_for(self, load: str, *, option: str) -> Brought:
        """The file that this load needs; raises `HarnessError`, which names the option."""
        found = next((brought for brought in self.brought if brought.load == load), None)
        if found is None:
            raise HarnessError(f"the load {load} needs a file from you", hint=f"say {option}")
        return found


class Guest(Protocol):
    """Commands in the client, as the guest agent runs them (`torture.machines.lab.agent.Agent`)."""

    def start(self, argv: Command) -> int:
        """Start a command and return its process id there."""

    def poll(self, pid: int, argv: Command) -> Completed | None:
        """The outcome of a started command, None while it runs."""

    def finish(self, pid: int, argv: Command, *, deadline_s: float) -> Completed:
        """Wait for a started command, and kill it at its deadline."""

    def put_program(self, path: str, content: bytes) -> None:
        """Write an executable file, in a place with room for it."""


class LedgerChannel(Protocol):
    """The messages that the host received (`torture.machines.lab.ledger_server.LedgerServer`)."""

    begun: int
    acknowledged: int
    failed: int
    ended: bool

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait for the ledger to reach a state; False when the deadline passed first."""

    def stop_load(self) -> None:
        """Ask the guest's writers to finish their operations and end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """The tools that a trial gives a workload."""

    guest: Guest
    open_ledger: Callable[[], LedgerChannel]
    """The client's ledger, which the host keeps from the first call on."""
    keep: Callable[[Completed], None]
    """Keep the output of a load that ended as evidence."""
    content_of: Callable[[Brought], bytes]
    """The content of the user's file; raises `HarnessError` when the file is gone or changed."""


class RunningLoad(Protocol):
    """A workload at work in one client."""

    @property
    def begun(self) -> int:
        """Operations begun so far, for a cut that aims at one."""

    @property
    def acknowledged(self) -> int:
        """Durable operations that were acknowledged to the client."""

    @property
    def is_over(self) -> bool:
        """Whether it ended by itself: it will acknowledge nothing more."""

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when it ended, or a writer failed, before the cut."""

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true of this load; False when the deadline passed first."""

    def take_ending(self) -> None:
        """Keep its ending as evidence, if it ended by itself: its client is about to die."""

    def finish(self, *, deadline_s: float) -> None:
        """Make it end; at the deadline, a process that hangs in the client's kernel stays there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload(ABC):
    """A load, and the judge of its data."""

    name: str
    """The choice's name, which distinguishes its findings from those of others beside it."""
    beside: tuple[str, ...] = ()
    """Names of the workloads that run in the same trial; they share one disk, and no ledger."""
    needs_files: bool = True
    """Whether it cannot work on a bare device."""
    needs_atomic_writes: bool = False
    """Whether it works on a bare disk alone, one that offers atomic writes."""
    needs_inodes: bool = False
    """Whether it reads modes, and inode numbers to detect two names of one file."""
    keeps_ledger: bool = False
    """Whether its acknowledgements are in the client's ledger."""
    can_ignore_read_errors: bool = False
    """Whether `judge` heeds `Evidence.ignores_read_errors`."""
    can_excuse_names: bool = False
    """The same of `Terms.excuses_names`."""
    image: str = CLIENT_IMAGE
    """The guest image that its client boots; another one where `CLIENT_IMAGE` lacks its programs."""
    prints_before: int = 0
    """The number of outputs that it leaves as evidence (`Step.CLIENT_LOAD`) before it begins."""
    prints_at_end: int = 0
    """The same, at its end, if its client lets it end."""

    @property
    def readback(self) -> str:
        """The evidence document of its read-back."""
        return f"readback-{self.name}.json"

    @property
    def readback_after_repair(self) -> str:
        """The same, after fsck's repair."""
        return f"readback-{self.name}-after-repair.json"

    def prints_due(self, *, ended: bool) -> int:
        """The outputs from before it began, and from its end where its client let it end."""
        return self.prints_before + (self.prints_at_end if ended else 0)

    @abstractmethod
    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The guest's settings: plain data, kept in `spec.json`."""

    @abstractmethod
    def prepare(self, job: dict[str, Any]) -> str:
        """Shell, run in the client once its disk is ready: make the files that the load needs.

        They must be durable before the load.
        """

    @abstractmethod
    def start(self, job: dict[str, Any], surroundings: Surroundings) -> RunningLoad:
        """Start it, and return once it acknowledged an operation; raises `HarnessError`."""

    @abstractmethod
    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads everything back in a guest and prints it as one document."""

    @abstractmethod
    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The fate of the acknowledged data; raises `UnreadableError` where nothing shows it."""

"""Loads that run beside the ledger and acknowledge nothing; some change files from before the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torture.choices.workloads.protocol import Command, Guest, Place, Surroundings, Workload
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import Completed, Evidence
from torture.oracles.verdict.guarantee import Terms, UnreadableError, Verdict
from torture.oracles.verdict.judgement import Findings

_STOP_DEADLINE_S = 20
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside(Workload):
    """The common part of all workloads that keep a filesystem busy beside the ledger."""

    beside: tuple[str, ...] = ("ledger",)
    prints_at_end: int = 1


class LoadBeside:
    """The load runs in one client until the file `stop` is there, or it finds something wrong."""

    begun = 0
    acknowledged = 0
    is_over = True
    """It never acknowledges anything."""

    def __init__(self, *, name: str, surroundings: Surroundings, argv: Command, stop: str) -> None:
        self._guest: Guest = surroundings.guest
        self._keep = surroundings.keep
        self._name = name
        self._argv = argv
        self._stop = stop
        self._pid = 0
        self._ended: Completed | None = None

    def begin(self) -> None:
        """Make it run from now on."""
        self._pid = self._guest.start(self._argv)

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when it ended; not when it found something wrong: that is evidence."""
        if self._ended is not None or (done := self._guest.poll(self._pid, self._argv)) is None:
            return
        self._take(done)
        if not self._is_evidence(done):
            raise HarnessError(f"{self._name} ended too early: {done.exit_code}: {done.stderr}")

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true; False when the deadline passed first."""
        return wait_until_true(reached, deadline_s=deadline_s, poll_s=_POLL_S)

    def take_ending(self) -> None:
        """Keep its output, if it ended by itself."""
        if self._ended is None and (done := self._guest.poll(self._pid, self._argv)) is not None:
            self._take(done)

    def finish(self, *, deadline_s: float) -> None:
        """Make it end after its work under way."""
        if self._ended is not None:
            return
        stop = ("touch", self._stop)
        self._guest.finish(self._guest.start(stop), stop, deadline_s=_STOP_DEADLINE_S)
        self._take(self._guest.finish(self._pid, self._argv, deadline_s=deadline_s))

    def _is_evidence(self, done: Completed) -> bool:
        """Whether it ended because it had found something wrong."""
        return False

    def _take(self, done: Completed) -> None:
        self._ended = done
        self._keep(done)


_NUMBERS_MAX = 12
_PYTHON = ("python3", "-S", "-c")
_BEGINNING = """
import json, os, random, sys, time
home, count = sys.argv[1], int(sys.argv[2])
"""
_DRAWING = """
draw, stop = random.Random(sys.argv[3]), sys.argv[4]
"""
READ_EACH = """
found = {"missing": [], "changed": [], "unreadable": []}
for number in range(count):
    try:
        file = os.open(path(number), os.O_RDONLY | os.O_NONBLOCK)
        if not is_as_it_was(number, os.pread(file, BYTES + 1, 0)): found["changed"].append(number)
        os.close(file)
    except FileNotFoundError: found["missing"].append(number)
    except OSError: found["unreadable"].append(number)
print(json.dumps(found))
"""
"""Reads each file, of `BYTES` at most; `is_as_it_was` takes its number and content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesBeside(Beside):
    """Its programs are Python's, without single quotes. They have the folder `home` and `count` files."""

    files: int
    common: str
    """The definitions that all three programs share."""
    make: str
    """Makes the files, and syncs them."""
    change: str
    """Changes them, by the random numbers of `draw`, until the file `stop` is there."""
    read: str
    """Prints the numbers of the files that are missing, changed or unreadable, as JSON."""

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The place, the number of files, and the seed of the draws."""
        return {"directory": f"{place.directory}/{self.name}", "files": self.files, "seed": seed}

    def prepare(self, job: dict[str, Any]) -> str:
        """Make the files, and sync them."""
        return f"python3 -S -c '{self._program(self.make)}' {job['directory']} {job['files']}"

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> LoadBeside:
        """Begin to change them."""
        stop = f"/run/{self.name}.stop"
        change = self._program(_DRAWING + self.change)
        argv = (*_PYTHON, change, job["directory"], str(job["files"]), str(job["seed"]), stop)
        load = LoadBeside(name=self.name, surroundings=surroundings, argv=argv, stop=stop)
        load.begin()
        return load

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads all files and prints those that are not as they were, as JSON."""
        return (*_PYTHON, self._program(self.read), job["directory"], str(job["files"]))

    def _program(self, own: str) -> str:
        return _BEGINNING + self.common + own

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The files that are gone; each counts as acknowledged and lost."""
        document = self.readback_after_repair if after_repair else self.readback
        gone = parse_gone(evidence.readbacks.get(document, ""), document)
        lost = sum(map(len, gone.values()))
        reasons = [
            f"{what} files from before the load ({len(numbers)}): {_few(numbers)}"
            for what, numbers in gone.items()
            if numbers
        ]
        return Findings(
            verdict=Verdict.CORRUPTED if lost else Verdict.INTACT,
            acknowledged=lost,
            lost=lost,
            missing=len(gone["missing"]),
            foreign=len(gone["changed"]) + len(gone["unreadable"]),
            reasons=tuple(reasons),
        )


def parse_gone(text: str, document: str) -> dict[str, list[int]]:
    """The files that are missing, changed or unreadable, by number.

    Raises `UnreadableError` where the read-back does not list them.
    """
    try:
        found = strict_json(text.encode())
        return {
            what: [int(number) for number in found[what]]
            for what in ("missing", "changed", "unreadable")
        }
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableError(f"{document} does not say which files are there: {error}") from error


def _few(numbers: list[int]) -> str:
    more = len(numbers) - _NUMBERS_MAX
    shown = ", ".join(map(str, numbers[:_NUMBERS_MAX]))
    return shown + (f" and {more} more" if more > 0 else "")

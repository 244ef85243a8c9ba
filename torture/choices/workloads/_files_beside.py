"""Files from before the load that a program changes beside the ledger. Each must survive the cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._beside import Beside, LoadBeside
from torture.choices.workloads.protocol import Command, Place, Surroundings
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.strict_json import strict_json
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.verdicts import UnreadableError, Verdict

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

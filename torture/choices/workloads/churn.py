"""Thousands of small files whose times keep changing beside the ledger. Each second syncs all.

The ledger's own metadata are a few blocks, and each commit of a filesystem writes them again. So
the next commit mends the blocks that a NAS forgets of one. A disk in daily use has thousands of
metadata blocks, and a commit writes blocks that the next commits do not write.

A filesystem commits every 5 to 30 s by itself (`commit` in ext4(5) and btrfs(5)). A cut of a load
of seconds hardly met a commit. Here each second has a commit. After a commit that an outage
delayed, the next comes 30 s later: otherwise it would at once mend the lost blocks.

No file's times are promised. The files were durable before the load began: each has to be there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._beside import Beside, LoadBeside
from torture.choices.workloads.protocol import Command, Place, Surroundings, Workload
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict

_NAME = "churn"
_FILES = 6000
_STOP = "/run/churn.stop"
_NUMBERS_MAX = 12
_PYTHON = ("python3", "-S", "-c")
_COMMON = """
import json, os, random, sys, time
home, count = sys.argv[1], int(sys.argv[2])
def path(number): return f"{home}/{number % 64}/{number}"
def content(number): return f"{number} " * 40
"""
_MAKE = (
    _COMMON
    + """
for folder in range(64): os.makedirs(f"{home}/{folder}")
for number in range(count):
    with open(path(number), "w") as file: file.write(content(number))
os.sync()
"""
)
_CHANGE = (
    _COMMON
    + """
draw, stop, due = random.Random(sys.argv[3]), sys.argv[4], time.monotonic() + 1
while not os.path.exists(stop):
    for _ in range(4): os.utime(path(draw.randrange(count)))
    time.sleep(0.1)
    begun = time.monotonic()
    if begun > due:
        os.sync()
        due = time.monotonic() + (1 if time.monotonic() < begun + 3 else 30)
"""
)
_READ = (
    _COMMON
    + """
found = {"missing": [], "changed": [], "unreadable": []}
def ask_for(number):
    try:
        file = os.open(path(number), os.O_RDONLY | os.O_NONBLOCK)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
        return file
    except FileNotFoundError: found["missing"].append(number)
    except OSError: found["unreadable"].append(number)
def compare(number, file):
    try:
        if os.read(file, 65536) != content(number).encode(): found["changed"].append(number)
    except OSError: found["unreadable"].append(number)
    os.close(file)
for folder in range(64):
    files = [(number, ask_for(number)) for number in range(folder, count, 64)]
    for number, file in files:
        if file is not None: compare(number, file)
print(json.dumps({what: sorted(numbers) for what, numbers in found.items()}))
"""
)
"""The program asks for a folder's files at once: each by itself is a round trip to the NAS. It
opens them once and without Python's layers. Those layers took an emulated guest 9 s of a
processor, five times the present time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Churn(Beside):
    """A disk with as many metadata as a disk in daily use."""

    name: str = _NAME

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The place, the number of files, and the seed of the draws."""
        return {"directory": f"{place.directory}/{_NAME}", "files": _FILES, "seed": seed}

    def prepare(self, job: dict[str, Any]) -> str:
        """Make the files, and sync them."""
        return f"python3 -S -c '{_MAKE}' {job['directory']} {job['files']}"

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> LoadBeside:
        """Begin to change them."""
        argv = (*_PYTHON, _CHANGE, job["directory"], str(job["files"]), str(job["seed"]), _STOP)
        load = LoadBeside(name=_NAME, surroundings=surroundings, argv=argv, stop=_STOP)
        load.begin()
        return load

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads all files and prints those that are not as they were, as JSON."""
        return (*_PYTHON, _READ, job["directory"], str(job["files"]))

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
        found = json.loads(text)
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


CHOICE: Choice[Workload] = Choice(
    name=_NAME,
    value=Churn(),
    words="the ledger, beside thousands of files that change, with a sync each second",
)

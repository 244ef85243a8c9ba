"""A freeze on what the intent log looks like: the very event, and the state behind random logs."""

from __future__ import annotations

import random
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.shelf.log_blocks_oracle import log_states
from suites.selftest.shelf.mutants import ONLY_WITH_LOG_BLOCKS, write_mutants
from suites.selftest.shelf.rig import DEADLINE_S, Build, Server, build, disk
from suites.selftest.unit.audit_story import BLOCK, zil_block
from suites.selftest.unit.event_records import encode_event
from torture.errors import DeadlineExceeded
from torture.facts.recording.events import Event, Kind
from torture.facts.recording.intent_log import Role
from torture.machines.host.native import SHELF_SOURCES

ZIL = zil_block()
DATA = BLOCK[:4096]
FLUSH, TRIM = "flush", "trim"

SEVERAL = {"event": "write-submit", "zil_uncovered": 2}
REUSED = {"event": "write-complete", "zil_reused": True}

Step = tuple[int, bytes | str, int]
"""A disk, what it is asked, and where."""

STORIES: dict[str, tuple[dict[str, Any], list[Step], bool]] = {
    "two on a disk": (SEVERAL, [(0, ZIL, 0), (0, ZIL, 8192)], True),
    "one, and its copy": (SEVERAL, [(0, ZIL, 0), (1, ZIL, 0)], False),
    "one behind a flush": (SEVERAL, [(0, ZIL, 0), (0, FLUSH, 0), (0, ZIL, 8192)], False),
    "two behind a flush": (
        SEVERAL, [(0, ZIL, 0), (0, FLUSH, 0), (0, ZIL, 8192), (0, ZIL, 16384)], True
    ),
    "a flush of another disk": (SEVERAL, [(0, ZIL, 0), (1, FLUSH, 0), (0, ZIL, 8192)], True),
    "one, and data": (SEVERAL, [(0, ZIL, 0), (0, DATA, 8192)], False),
    "the same place": (REUSED, [(0, ZIL, 0), (0, FLUSH, 0), (0, ZIL, 0)], True),
    "its last sector": (REUSED, [(0, ZIL, 512), (0, FLUSH, 0), (0, ZIL, 4096)], True),
    "a neighbour": (REUSED, [(0, ZIL, 0), (0, FLUSH, 0), (0, ZIL, 4096)], False),
    "another disk": (REUSED, [(0, ZIL, 0), (0, FLUSH, 0), (1, ZIL, 0)], False),
    "data since": (REUSED, [(0, ZIL, 0), (0, DATA, 0), (0, FLUSH, 0), (0, ZIL, 0)], False),
    "a trim since": (REUSED, [(0, ZIL, 0), (0, TRIM, 0), (0, FLUSH, 0), (0, ZIL, 0)], False),
    "not the log's": (REUSED, [(0, ZIL, 0), (0, FLUSH, 0), (0, DATA, 0)], False),
    "covered again": (
        {"event": "flush-complete", "zil_reused": True},
        [(0, ZIL, 0), (0, FLUSH, 0), (0, ZIL, 0), (0, FLUSH, 0)],
        False,
    ),
}  # fmt: skip
"""The awaited block, the requests, and whether the last of them freezes."""


@pytest.fixture(scope="module")
def wrong_shelves(tmp_path_factory: pytest.TempPathFactory) -> Build:
    sources = write_mutants(tmp_path_factory.mktemp("log") / "native", ONLY_WITH_LOG_BLOCKS)
    return build(sources, optimised=False)


def frozen_at(shelf: Build, folder: Path, command: object, steps: Sequence[Step]) -> int | None:
    """The number of the step that froze it; None when none did."""
    disks = [disk(f"d{number}", size=65536) for number in range(2)]
    server = Server(shelf, folder, "s", disks, recording="life")
    try:
        lines = server.lines(["d0", "d1"])
        server.tell({"freeze": command})
        for number, (place, asked, offset) in enumerate(steps):
            line = lines[place]
            if asked == FLUSH:
                reply = line.flush()
            elif asked == TRIM:
                reply = line.trim(4096, offset)
            else:
                assert isinstance(asked, bytes)
                reply = line.write(asked, offset)
            end = time.monotonic() + DEADLINE_S
            while not line.has_ended(reply):
                if server.status()["frozen"]:
                    return number
                if time.monotonic() > end:
                    raise DeadlineExceeded(f"no answer to {asked!r:.20}")
            # an answer may leave with the event that froze
            if server.status()["frozen"]:
                return number
        return None
    finally:
        server.end()


@pytest.mark.parametrize("name", STORIES)
def test_it_freezes_with_the_awaited_block_and_not_before(name: str, folder: Path) -> None:
    command, steps, freezes = STORIES[name]
    assert frozen_at(build(), folder, command, steps) == (len(steps) - 1 if freezes else None)


@pytest.mark.parametrize("mutant", [mutant.name for mutant in ONLY_WITH_LOG_BLOCKS])
def test_a_shelf_that_takes_it_wrongly_is_found_out(
    mutant: str, wrong_shelves: Build, folder: Path
) -> None:
    wrong = []
    for number, (name, (command, steps, freezes)) in enumerate(STORIES.items()):
        place = folder / str(number)
        place.mkdir()
        found = frozen_at(wrong_shelves.chosen(mutant), place, command, steps)
        if found != (len(steps) - 1 if freezes else None):
            wrong.append(name)
    assert wrong


# The state of the intent log behind each event, by random logs; and the memory that it takes.

_DRIVER = Path(__file__).with_name("log_blocks_driver.cpp")
_NUMBERS = {None: 0, Role.ZIL: 1, Role.DATA: 5}
"""As `role.hpp` counts them."""
_DEADLINE_S = 120
_BLOCK_BYTES = 4096
_PLACES = 8
_LONG = 100_000
_HELD_BYTES_MAX = 32768


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("log-blocks") / "driver"
    argv = ["g++", "-std=c++17", "-O1", f"-I{SHELF_SOURCES}", str(_DRIVER), "-o", str(program)]
    subprocess.run([*argv, "-ldeflate"], timeout=_DEADLINE_S, check=True)
    return program


class DrawnLog:
    """A log, and the role of each event."""

    def __init__(self) -> None:
        self.events = [Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=1)]
        self.roles: list[Role | None] = [None]

    def add(self, kind: Kind, *, role: Role | None = None, disk: int = 0, reference: int = 0,
            place: int = 0, fua: bool = False) -> int:  # fmt: skip
        """Its number. A place counts in blocks; flushes have none."""
        length = 0 if kind in (Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE) else _BLOCK_BYTES
        number = len(self.events)
        self.events.append(
            Event(
                seq=number, time_ns=number, kind=kind, disk=disk, reference=reference,
                offset=place * _BLOCK_BYTES, length=length, fua=fua,
            )
        )  # fmt: skip
        self.roles.append(role)
        return number

    def as_input(self) -> bytes:
        """As the driver reads it."""
        numbers = (_NUMBERS[role] for role in self.roles)
        return b"".join(
            encode_event(event) + struct.pack("<I", number)
            for event, number in zip(self.events, numbers, strict=True)
        )


def _drawn(seed: int, count: int) -> DrawnLog:
    """Writes and flushes of two disks, several in flight at once, that end in any order."""
    draw, log = random.Random(seed), DrawnLog()
    under_way: list[tuple[int, Kind, Role | None, int, int, bool]] = []
    for _ in range(count):
        if under_way and draw.random() < 0.5:
            seq, ending, role, disk, place, fua = under_way.pop(draw.randrange(len(under_way)))
            log.add(ending, role=role, disk=disk, reference=seq, place=place, fua=fua)
            continue
        disk, place, fua = draw.randrange(2), draw.randrange(_PLACES), draw.random() < 0.1
        if draw.random() < 0.2:
            seq = log.add(Kind.FLUSH_SUBMIT, disk=disk)
            under_way.append((seq, Kind.FLUSH_COMPLETE, None, disk, 0, False))
        else:
            role = draw.choice([Role.ZIL, Role.ZIL, Role.DATA])
            seq = log.add(Kind.WRITE_SUBMIT, role=role, disk=disk, place=place, fua=fua)
            under_way.append((seq, Kind.WRITE_COMPLETE, role, disk, place, fua))
    return log


def _run(driver: Path, log: DrawnLog, *arguments: str) -> Sequence[str]:
    done = subprocess.run(
        [driver, *arguments], input=log.as_input(), capture_output=True, timeout=_DEADLINE_S,
        check=True,
    )  # fmt: skip
    return done.stdout.decode().splitlines()


def test_it_is_as_the_specification_says(driver: Path) -> None:
    reused = 0
    for seed in range(40):
        log = _drawn(seed, 150)
        wanted = log_states(log.events, log.roles)
        assert _run(driver, log) == [f"{count} {is_reused:d}" for count, is_reused in wanted], seed
        reused += sum(is_reused for _, is_reused in wanted)
    assert reused > 100, "or the logs that are drawn show little"


def test_without_flushes_it_remembers_no_more_than_is_in_flight(driver: Path) -> None:
    """So of a NAS that flushes nothing; the last flush has all of it to cover."""
    log = DrawnLog()
    for number in range(_LONG):
        place = number % _PLACES
        seq = log.add(Kind.WRITE_SUBMIT, role=Role.ZIL, place=place)
        log.add(Kind.WRITE_COMPLETE, role=Role.ZIL, reference=seq, place=place)
    flush = log.add(Kind.FLUSH_SUBMIT)
    log.add(Kind.FLUSH_COMPLETE, reference=flush)
    assert _run(driver, log)[-2:] == [f"{_LONG} 1", "0 0"]
    assert int(_run(driver, log, "held")[0]) < _HELD_BYTES_MAX

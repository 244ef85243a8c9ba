"""The state of the intent log behind each event, by random logs; and the memory that it takes."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from suites.selftest.shelf.log_blocks_oracle import log_states
from suites.selftest.unit.event_records import encode_event
from torture.facts.recording.events import Event, Kind
from torture.facts.recording.roles import Role
from torture.machines.host.native import SHELF_SOURCES

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

"""Views of logs: their index is made once, and a stale one, or plain nonsense, is not believed."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suites.selftest.shelf.forge import forge, scaled, writes_one_by_one
from suites.selftest.shelf.mutants import ONLY_IN_FORGED_LOGS, write_mutants
from suites.selftest.shelf.requests import Difference
from suites.selftest.shelf.rig import Build, Server, build, disk, held_at_cut, of_cut
from suites.selftest.shelf.views_oracle import (
    draw_views,
    expected,
    must_be_as_expected,
    payloads,
    write_views,
)
from suites.selftest.unit.facts.shelf_logs import BASE, SECTOR, SECTORS, Log, logs, payload
from torture.errors import HarnessError
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import Event, Kind, load_recording
from torture.facts.recording.model import content

WRITES = 20_000
SIZE = 1 << 20
LENGTH = 512
HEADER_BYTES = 40


def recorded(folder: Path, writes: int) -> Path:
    """A recording of so many writes to one disk."""
    events, written = writes_one_by_one(writes, size=SIZE, length=LENGTH)
    forge(folder / "life", [disk("d0", size=SIZE)], events, written)
    return folder / "life"


def shown(folder: Path, cut: int) -> bytes:
    """The disk, cut there; has to be what the specification says."""
    held = held_at_cut(folder, cut, SIZE)
    recording = load_recording(folder / "life")
    assert held == content(
        bytes(SIZE),
        recording.events,
        disk=0,
        sector=512,
        view=DiskState(policy=Policy.ALL),
        cut=cut,
        seed=0,
        payload=payloads(recording),
    )
    return held


def identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def test_the_index_is_made_once(folder: Path) -> None:
    index = recorded(folder, WRITES) / "index"
    shown(folder, 2 * WRITES)
    made = identity(index)
    shown(folder, 2 * WRITES)
    shown(folder, WRITES)
    assert identity(index) == made


def test_a_recording_that_grew_gets_another_one(folder: Path) -> None:
    index = recorded(folder, 100) / "index"
    before = shown(folder, 200)
    made = identity(index)
    recorded(folder, 300)
    assert shown(folder, 600) != before
    assert identity(index) != made
    assert shown(folder, 200) == before


@pytest.mark.parametrize("length", [0, 7, HEADER_BYTES, 5000])
def test_an_index_that_was_not_written_whole_is_made_again(length: int, folder: Path) -> None:
    index = recorded(folder, 500) / "index"
    shown(folder, 1000)
    whole = index.read_bytes()
    assert len(whole) > 5000
    os.truncate(index, length)
    shown(folder, 1000)
    assert index.read_bytes() == whole


def test_an_index_of_another_recording_is_made_again(folder: Path) -> None:
    """The folder's recording was replaced by one with as many events."""
    life = recorded(folder, 500)
    shown(folder, 1000)
    events, written = writes_one_by_one(500, size=SIZE, length=2 * LENGTH)
    forge(life, [disk("d0", size=SIZE)], events, written)
    assert held_at_cut(folder, 2, SIZE) == written[1] + bytes(SIZE - 2 * LENGTH)


# Logs that no shelf would write so soon: failures, late flushes, and plain nonsense.

DISKS = ("d0", "d1")
VIEWS = 4


def show(
    shelf: Build, folder: Path, log: Log, seed: int, factor: int, *, sector: int, physical: int
) -> None:
    """Serve views of a log, and raise `Difference` when the specification sees others.

    `factor` makes its requests larger.
    """
    base = BASE * factor
    (folder / "base.raw").write_bytes(base)
    disks = [
        disk(
            name,
            size=len(base),
            sector=sector,
            physical_sector=physical,
            source={"image": "../base.raw"},
        )
        for name in DISKS
    ]
    events = scaled(log.events, factor)
    written = {
        event.seq: payload(event.seq, event.length // SECTOR)
        for event in events
        if event.kind is Kind.WRITE_SUBMIT
    }
    forge(folder / "life", disks, events, written)
    (folder / "life" / "index").unlink(missing_ok=True)
    recording = load_recording(folder / "life")
    views = draw_views(random.Random(seed), recording, DISKS, VIEWS)
    wanted = expected(recording, views, write_views(folder, "v", views), dict.fromkeys(DISKS, base))
    server = Server(shelf, folder, "views", [each.export for each in wanted], threads=1)
    try:
        must_be_as_expected(wanted, server.contents({each.name: len(base) for each in wanted}))
    finally:
        server.end()


def show_often(shelf: Build, folder: Path, log: Log) -> None:
    """Other views of it each time."""
    for seed in range(20):
        show(shelf, folder, log, seed, 1, sector=SECTOR, physical=SECTOR)


def show_many(shelf: Build, folder: Path, count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        log=logs,
        seed=st.integers(0, 2**64 - 1),
        sizes=st.sampled_from([(1, 512, 512), (8, 4096, 4096), (3, 512, 4096)]),
    )
    def shown(log: Log, seed: int, sizes: tuple[int, int, int]) -> None:
        factor, sector, physical = sizes
        show(shelf, folder, log, seed, factor, sector=sector, physical=physical)

    shown()


def test_views_agree_with_the_specification(folder: Path, sequences: int | None) -> None:
    show_many(build(), folder, sequences or 100)


def test_a_flush_that_ends_late_takes_nothing_back(folder: Path, tmp_path: Path) -> None:
    """Shown with a plugin that makes this mistake, and without it."""
    sources = write_mutants(tmp_path / "native", [ONLY_IN_FORGED_LOGS])
    both = build(sources, optimised=False)
    log = Log()
    late = log.submit(Kind.FLUSH_SUBMIT)
    log.write()
    log.flush()
    log.complete(late)
    show(both, folder, log, 3, 1, sector=SECTOR, physical=SECTOR)
    with pytest.raises(Difference):
        show_often(both.chosen(ONLY_IN_FORGED_LOGS.name), folder, log)


def one_write(**changes: Any) -> list[Event]:
    """A log of one completed write, with something wrong about its submission."""
    events, _ = writes_one_by_one(1, size=SECTOR * SECTORS, length=SECTOR)
    return [events[0], replace(events[1], **changes), events[2]]


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        (one_write(offset=SECTOR * SECTORS), "does not fit"),
        (one_write(length=SECTOR * (SECTORS + 1)), "does not fit"),
        (one_write(offset=2**64 - SECTOR), "does not fit"),
        (one_write(length=2**64 - SECTOR), "does not fit"),
        (one_write(offset=SECTOR, length=2**64 - SECTOR), "does not fit"),
        (one_write(offset=100), "does not fit"),
        (one_write(length=SECTOR + 1), "does not fit"),
        (one_write(disk=1), "completes no write"),
        (
            [*one_write()[:2], replace(one_write()[2], kind=Kind.TRIM_COMPLETE)],
            "completes no write",
        ),
        ([*one_write()[:2], replace(one_write()[2], reference=0)], "completes no write"),
        ([replace(one_write()[0], reference=2), *one_write()[1:]], "no log of this version"),
    ],
)
def test_a_log_that_makes_no_sense_is_refused(
    events: list[Event], complaint: str, folder: Path
) -> None:
    """Its checksums are right: somebody's mistake, and no reason to read or write beyond a table."""
    disks = [disk(name, size=SECTOR * SECTORS) for name in DISKS]
    forge(folder / "life", disks, events, {1: bytes(SECTOR)})
    with pytest.raises(HarnessError, match=complaint):
        Server(build(), folder, "view", [disks[0] | {"source": of_cut(folder, 2)}])


@pytest.mark.parametrize("cut", [3, 2**64 - 1, -1, 1.5, "2", None])
def test_a_cut_that_is_not_in_the_log_is_refused(cut: object, folder: Path) -> None:
    disks = [disk("d0", size=SECTOR * SECTORS)]
    forge(folder / "life", disks, one_write(), {1: bytes(SECTOR)})
    with pytest.raises(HarnessError, match=r"cut\.view\.json"):
        Server(build(), folder, "view", [disks[0] | {"source": of_cut(folder, cut)}])


def test_a_disk_served_larger_than_it_was_has_zeroes_at_its_end(folder: Path) -> None:
    events, written = writes_one_by_one(SECTORS, size=SECTOR * SECTORS, length=SECTOR)
    forge(folder / "life", [disk("d0", size=SECTOR * SECTORS)], events, written)
    held = held_at_cut(folder, len(events) - 1, SECTOR * SECTORS * 100)
    assert any(held[: SECTOR * SECTORS])
    assert not any(held[SECTOR * SECTORS :])

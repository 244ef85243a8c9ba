"""A freeze on what the intent log looks like: with the very event behind which it does."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.shelf.mutants import ONLY_WITH_LOG_BLOCKS, write_mutants
from suites.selftest.shelf.rig import DEADLINE_S, Build, Server, build, disk
from suites.selftest.unit.audit_story import BLOCK, zil_block
from torture.errors import DeadlineExceeded

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
        control, *lines = server.lines(["control", "d0", "d1"])
        control.wait_all([control.write(json.dumps({"freeze": command}).encode(), 0)])
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

"""Freezes: with the very event of a role, and processes that are named stand still with it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.selftest.shelf.mutants import ONLY_WITH_ROLES, write_mutants
from suites.selftest.shelf.rig import Build, Server, build, disk
from suites.selftest.unit.audit_story import uberblock, zil_block
from torture.deadlines import truth, wait_for
from torture.errors import HarnessError
from torture.facts.recording.intent_log import Role

_SOON_S = 5.0
_LATE_S = 0.3


@pytest.fixture(scope="module")
def wrong_shelf(tmp_path_factory: pytest.TempPathFactory) -> Build:
    sources = write_mutants(tmp_path_factory.mktemp("roles") / "native", (ONLY_WITH_ROLES,))
    return build(sources, optimised=False).chosen(ONLY_WITH_ROLES.name)


def freezes(shelf: Build, folder: Path, event: str, role: Role, *, within_s: float) -> bool:
    """Whether it freezes at this event, given a block of the intent log and its flush."""
    server = Server(shelf, folder, "s", [disk("d0", size=65536)], recording="life")
    try:
        line = server.line("d0")
        line.wait_all([line.write(uberblock(5), 0)])
        server.tell({"freeze": {"event": event, "role": role.value}})
        end = time.monotonic() + within_s
        line.write(zil_block()[:4096], 4096)
        while not server.status()["frozen"] and time.monotonic() < end:
            line.flush()
            time.sleep(0.02)
        return bool(server.status()["frozen"])
    finally:
        server.end()


@pytest.mark.parametrize(
    "event", ["write-submit", "write-complete", "flush-submit", "flush-complete"]
)
def test_it_freezes_with_the_role_that_is_asked_for(event: str, folder: Path) -> None:
    assert freezes(build(), folder, event, Role.ZIL, within_s=_SOON_S)


@pytest.mark.parametrize("event", ["write-submit", "flush-submit"])
def test_it_does_not_with_another(event: str, folder: Path) -> None:
    assert not freezes(build(), folder, event, Role.METADATA, within_s=_LATE_S)


def test_a_shelf_whose_flushes_have_no_role_is_found_out(wrong_shelf: Build, folder: Path) -> None:
    assert not freezes(wrong_shelf, folder, "flush-submit", Role.ZIL, within_s=1.0)
    (folder / "again").mkdir()
    assert freezes(wrong_shelf, folder / "again", "write-submit", Role.ZIL, within_s=_SOON_S)


# Processes that are named to the shelf stand still with it: from the very event, and no others.

_DEADLINE_S = 5
Process = subprocess.Popen[bytes]


@pytest.fixture
def shelf(folder: Path) -> Iterator[Server]:
    server = Server(build(), folder, "s", [disk("d0", size=65536)], recording="life")
    yield server
    server.end()


@pytest.fixture
def processes() -> Iterator[tuple[Process, Process]]:
    """Two that sleep; the second one is never named."""
    both = tuple(subprocess.Popen(["sleep", "600"]) for _ in range(2))
    yield both[0], both[1]
    for process in both:
        process.kill()
        process.wait(_DEADLINE_S)


def is_stopped(process: Process) -> bool:
    """Whether the kernel's letter for it is `T` (proc_pid_stat(5)); one that goes on may sleep or run."""
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def wait_until_stopped(process: Process) -> None:
    wait_for(lambda: truth(is_stopped(process)), what="a halt", deadline_s=_DEADLINE_S)


def test_they_stand_still_with_the_event_that_freezes(
    shelf: Server, processes: tuple[Process, Process]
) -> None:
    named, other = processes
    line = shelf.line("d0")
    shelf.tell({"halt": [named.pid]})
    shelf.tell({"freeze": {"event": "flush-complete"}})
    line.wait_all([line.write(bytes(512), 0)])
    assert not is_stopped(named)
    line.flush()
    wait_until_stopped(named)
    assert not is_stopped(other)


def test_once_frozen_they_are_stopped_at_once(
    shelf: Server, processes: tuple[Process, Process]
) -> None:
    shelf.tell({"freeze": "now"})
    shelf.tell({"halt": [processes[0].pid]})
    wait_until_stopped(processes[0])


def test_the_last_list_counts(shelf: Server, processes: tuple[Process, Process]) -> None:
    shelf.tell({"halt": [processes[1].pid]})
    shelf.tell({"halt": [processes[0].pid]})
    shelf.tell({"freeze": "now"})
    wait_until_stopped(processes[0])
    assert not is_stopped(processes[1])


def test_a_victim_that_has_ended_is_skipped(
    shelf: Server, processes: tuple[Process, Process]
) -> None:
    gone, other = processes
    shelf.tell({"halt": [gone.pid, other.pid]})
    gone.send_signal(signal.SIGKILL)
    gone.wait(_DEADLINE_S)
    shelf.tell({"freeze": "now"})
    wait_until_stopped(other)


@pytest.mark.parametrize("pids", [[2**22 + 1], [-1], ["1"], [0.5], 7])
def test_a_process_that_cannot_be_stopped_is_refused(shelf: Server, pids: object) -> None:
    with pytest.raises(HarnessError):
        shelf.tell({"halt": pids})
    assert shelf.status()["frozen"] is False

"""Random lives of the plugin: right shelves are as specified, and each wrong one is found out.

The library that a client's QEMU loads first: stable writes over NFS.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis.errors import Flaky

from suites.selftest.shelf.freeze_oracle import check_freeze
from suites.selftest.shelf.log_oracle import Logged, Order
from suites.selftest.shelf.machine import run_sequences
from suites.selftest.shelf.mutants import (
    FAULTS,
    MUTANTS,
    POLICY_MUTANTS,
    RECORDING_MUTANTS,
    write_mutants,
)
from suites.selftest.shelf.requests import Difference, Request, Verb
from suites.selftest.shelf.rig import SANITIZERS, Build, SanitizerReport, build, sanitized_build
from torture.facts.recording.events import Event, Kind, Recording
from torture.files import CHECKOUT
from torture.machines.host.native import preload_library

_ALL = (*MUTANTS, *POLICY_MUTANTS, *RECORDING_MUTANTS)
_SEQUENCES_MAX = 250
_SEQUENCES_OF_THE_CONTROL = 40


@pytest.fixture(scope="module")
def wrong_shelves(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """All mutants in one build, none of them switched on."""
    return build(
        write_mutants(tmp_path_factory.mktemp("mutants") / "native", _ALL), optimised=False
    )


def differences(shelf: Build, folder: Path, sequences: int) -> list[Difference]:
    """The findings until the first difference; anything else is raised."""
    found: list[BaseException] = []
    try:
        run_sequences(
            shelf, folder, sequences, is_random=False, phases=(Phase.generate,), found=found
        )
    except (Difference, Flaky):  # threads do not repeat themselves
        assert found
    assert all(isinstance(error, Difference) for error in found), found
    return [error for error in found if isinstance(error, Difference)]


@pytest.mark.parametrize("name", [mutant.name for mutant in _ALL])
def test_a_wrong_shelf_is_found_out(name: str, wrong_shelves: Build, folder: Path) -> None:
    assert differences(wrong_shelves.chosen(name), folder, _SEQUENCES_MAX)


def test_the_same_build_without_a_mistake_is_not(wrong_shelves: Build, folder: Path) -> None:
    assert not differences(wrong_shelves, folder, _SEQUENCES_OF_THE_CONTROL)


# A kill between an event and the freeze at it is no mistake of the shelf; a later event is one.

_EVENTS = tuple(
    Event(seq=seq, time_ns=seq, kind=kind)
    for seq, kind in enumerate((Kind.BEGIN, Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE))
)
_FLUSH = Request(verb=Verb.FLUSH, disk=0, issued=3)
_ORDER = Order([(_FLUSH, Logged(first=1, last=2))])
_COMMANDS = ({"at_seq": 1}, {"event": "flush-submit", "count": 1})
"""Both are acknowledged before the flush is issued, so the flush's submission is due."""


def _check(command: object, *, last: int, was_killed: bool) -> None:
    recording = Recording(folder=Path("nowhere"), disks=(), events=_EVENTS[: last + 1])
    freeze = Request(verb=Verb.FREEZE, freeze=command, issued=1, acked=2)
    check_freeze(recording, (), [freeze, _FLUSH], _ORDER, was_killed=was_killed)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_kill_may_come_before_the_freeze_is_recorded(command: object) -> None:
    _check(command, last=1, was_killed=True)


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize(("last", "was_killed"), [(1, False), (2, False), (2, True)])
def test_a_freeze_is_overdue(command: object, last: int, was_killed: bool) -> None:
    with pytest.raises(Difference, match="not frozen"):
        _check(command, last=last, was_killed=was_killed)


# In random lives and under sanitizers: the plugin as specified. `SHELF_SEQUENCES=10000` runs 10000.

_RANDOM_SEQUENCES = 100


@pytest.mark.timeout(7200)  # as many as somebody asks for
def test_the_shelf_behaves_as_its_specification_says(folder: Path, sequences: int | None) -> None:
    run_sequences(build(), folder, sequences or _RANDOM_SEQUENCES, is_random=sequences is not None)


# The same sequences under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

_SEQUENCES = 15
_SEQUENCES_OF_A_FAULT = 50


@pytest.mark.timeout(7200)  # as many as somebody asks for
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitizer_has_nothing_to_say(
    sanitizer: str, folder: Path, sequences: int | None
) -> None:
    shelf = sanitized_build(sanitizer)
    run_sequences(shelf, folder, sequences or _SEQUENCES, is_random=sequences is not None)


@pytest.mark.parametrize(
    ("sanitizer", "fault"),
    [(sanitizer, fault.name) for sanitizer in SANITIZERS for fault in FAULTS[sanitizer]],
)
def test_a_planted_fault_is_reported(
    sanitizer: str, fault: str, folder: Path, tmp_path: Path
) -> None:
    faulty = sanitized_build(sanitizer, write_mutants(tmp_path / "native", FAULTS[sanitizer]))
    found: list[BaseException] = []
    with pytest.raises((SanitizerReport, Flaky)):
        run_sequences(
            faulty.chosen(fault), folder, _SEQUENCES_OF_A_FAULT,
            is_random=False, phases=(Phase.generate,), found=found,
        )  # fmt: skip
    assert isinstance(found[0], SanitizerReport)


_SOURCE = CHECKOUT / "torture" / "machines" / "lab" / "native" / "libnfs_stable.cpp"
_STAND_IN = """
#include <cstdio>
extern "C" int nfs_open(void *, const char *path, int flags, void **) {
    std::printf("%s %d\\n", path, flags);
    return 7;
}
"""
_OPENING = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
print(ctypes.CDLL(None).nfs_open(None, b"/disk.raw", 2, None), flush=True)
ctypes.CDLL(None).fflush(None)
"""
_DEADLINE_S = 60


def test_it_is_built_once_and_asks_for_libnfs_by_its_name() -> None:
    library = preload_library(_SOURCE)
    assert preload_library(_SOURCE) == library
    assert ctypes.CDLL(str(library)).nfs_open(None, b"/f", 0, None) == -errno.ENOSYS


def test_a_file_is_opened_for_stable_writes(tmp_path: Path) -> None:
    """As QEMU does: libnfs comes later, and locally."""
    source, libnfs = tmp_path / "stand_in.cpp", tmp_path / "libnfs.so.13"
    source.write_text(_STAND_IN)
    build = ["g++", "-shared", "-fPIC", "-Wl,-soname,libnfs.so.13", str(source), "-o", str(libnfs)]
    subprocess.run(build, check=True, timeout=_DEADLINE_S)
    opened = subprocess.run(
        [sys.executable, "-c", _OPENING, str(libnfs)],
        env=os.environ | {"LD_PRELOAD": str(preload_library(_SOURCE))},
        capture_output=True,
        text=True,
        check=True,
        timeout=_DEADLINE_S,
    )
    assert sorted(opened.stdout.split("\n")) == ["", f"/disk.raw {2 | os.O_SYNC}", "7"]

"""A freeze on an event of a role: with that event, and with no other role's."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from suites.selftest.shelf.mutants import ONLY_WITH_ROLES, write_mutants
from suites.selftest.shelf.rig import Build, Server, build, disk
from suites.selftest.unit.audit_story import uberblock, zil_block
from torture.facts.recording.roles import Role

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
        line, control = server.line("d0"), server.line("control")
        line.wait_all([line.write(uberblock(5), 0)])
        command = {"freeze": {"event": event, "role": role.value}}
        control.wait_all([control.write(json.dumps(command).encode(), 0)])
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

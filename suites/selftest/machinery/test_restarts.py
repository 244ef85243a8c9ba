"""A machine that was killed can be resumed at once, even when libvirt is slow to let go of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.machinery.sandbox import in_sandbox

_DEADLINE_S = 240
_DAWDLE = Path(__file__).with_name("slow_removal.cpp")


@pytest.fixture(scope="module")
def restarts(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    library = vm_scratch / "slow_removal.so"
    argv = ["g++", "-shared", "-fPIC", "-Wall", "-Werror", str(_DAWDLE), "-o", str(library)]
    subprocess.run(argv, check=True, timeout=_DEADLINE_S)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        return in_sandbox(
            "suites.selftest.machinery.restarts:restarts_of_a_slow_libvirt",
            scratch=vm_scratch / "r",
            log=tmp_path_factory.mktemp("restarts") / "log",
            deadline_s=_DEADLINE_S,
        )


def test_a_domain_out_of_sight_may_still_hold_its_name(restarts: Any) -> None:
    assert restarts["hasty"] == "operation failed: domain 'nas' is already being removed"


def test_a_killed_machine_is_resumed_at_once_all_the_same(restarts: Any) -> None:
    assert restarts["refusals"] == []
    assert len(restarts["started_s"]) > 1


def test_a_kept_client_gives_up_its_name(restarts: Any) -> None:
    assert restarts["second_checker"] == {"kept": False, "second": True}

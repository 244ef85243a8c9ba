"""A machine after a reboot or a kill: it differs where a real one would, and can be resumed at once."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.machinery.block_sessions import NO_CONTROLLER, NO_SESSION
from suites.selftest.machinery.sandbox import Stage, in_sandbox
from torture.machines.host.abilities import NetworkKind, choose_network

_DEADLINE_S = 240

pytestmark = pytest.mark.skipif(
    choose_network().kind is not NetworkKind.BRIDGE, reason="NFS needs a bridge"
)


@pytest.fixture(scope="module")
def boots(stage: Stage, vm_scratch: Path) -> Any:
    scene = "suites.selftest.machinery.reboots:boots"
    return stage.play(scene, scratch=vm_scratch / "reboots", deadline_s=_DEADLINE_S)


def test_the_servers_write_verifier_is_another_and_holds_as_long_as_it_runs(boots: Any) -> None:
    before, after = (said["verifiers"] for said in boots["said"])
    assert len(set(before)) == len(set(after)) == 1
    assert before != after


def test_a_client_of_nfs_4_learns_of_another_boot(boots: Any) -> None:
    before, after = (said["booted_s"] for said in boots["said"])
    assert time.time() - 1000 < before < after < time.time() + 10


def test_a_file_handle_is_the_same_or_a_client_could_not_go_on(boots: Any) -> None:
    before, after = (said["root"] for said in boots["said"])
    assert before == after != ""


def test_the_kernels_random_numbers_are_others(boots: Any) -> None:
    before, after = (said["uuid"] for said in boots["said"])
    assert before != after


def test_zfs_draws_other_random_numbers_in_each_boot_that_follows(boots: Any) -> None:
    before, after = boots["guids"]
    assert int(before) != int(after)


def test_a_target_knows_a_session_as_long_as_it_runs_and_no_longer(boots: Any) -> None:
    before, after = boots["known"]
    assert tuple(before["iscsi"]) != NO_SESSION
    assert before["nvme"] != NO_CONTROLLER
    assert (tuple(after["iscsi"]), after["nvme"]) == (NO_SESSION, NO_CONTROLLER)


def test_no_boot_begins_with_a_pool_a_target_or_a_server_that_could_remember_a_client(
    boots: Any,
) -> None:
    assert boots["left"] == ""


def test_the_promises_of_a_disk_are_read_off_the_wire(boots: Any) -> None:
    wanted = [("write", 4096, 512, False), ("flush", 0, 0, False), ("write", 8192, 512, True)]
    assert len(boots["requests"]) == 2
    for requests in boots["requests"].values():
        what = [(x["kind"], x["offset_bytes"], x["length_bytes"], x["is_forced"]) for x in requests]
        assert what == wanted
        times = [time_ns for x in requests for time_ns in (x["submitted_ns"], x["completed_ns"])]
        assert times == sorted(times)
        assert time.time() - 1000 < times[0] / 1e9 < times[-1] / 1e9 < time.time()


# A machine that was killed can be resumed at once, even when libvirt is slow to let go of it.

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

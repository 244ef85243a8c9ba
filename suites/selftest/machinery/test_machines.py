"""The effects of a cut, and the end of a guest that misbehaves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.machinery.sandbox import Stage

_SCENES = "suites.selftest.machinery.trial_stages"
_OUTAGES = "suites.selftest.machinery.outages"
_OVERFLOW = "suites.selftest.machinery.wire_overflow"
_DEADLINE_S = 240


def _played(scene: str, folder: str) -> Any:
    """A fixture: the result of a scene, which is played once."""

    @pytest.fixture(scope="module")
    def result(stage: Stage, vm_scratch: Path) -> Any:
        return stage.play(scene, scratch=vm_scratch / folder, deadline_s=_DEADLINE_S)

    return result


power_cuts = _played(f"{_SCENES}:power_cuts", "p")
failures = _played(f"{_SCENES}:failures", "f")
outages = _played(f"{_OUTAGES}:outages", "o")
proofs = _played(f"{_SCENES}:proofs", "q")
large_disk = _played(f"{_SCENES}:sectors", "s")


@pytest.mark.parametrize("way", ["cut", "killed"])
def test_a_cut_sends_no_flush_and_no_goodbye_to_the_disks(power_cuts: Any, way: str) -> None:
    before, after = power_cuts[way]["before"], power_cuts[way]["after"]
    assert before["unflushed"] > 0, "nothing was left to flush: the test proves nothing"
    assert after["flushes"] == before["flushes"]
    assert after["unflushed"] == before["unflushed"]


def test_a_frozen_shelf_does_not_even_hear_that_qemu_is_gone(power_cuts: Any) -> None:
    assert power_cuts["cut"]["after"] == power_cuts["cut"]["before"]


def test_a_graceful_end_does_flush_so_the_test_above_can_fail(power_cuts: Any) -> None:
    before, after = power_cuts["terminated"]["before"], power_cuts["terminated"]["after"]
    assert after["flushes"] > before["flushes"]
    assert after["unflushed"] == 0


def test_a_command_that_hangs_ends_at_its_deadline_and_the_guest_goes_on(failures: Any) -> None:
    assert failures["hung"] == {
        "exit_code": None, "said": "begun\n", "left": "", "after": "alive\n",
    }  # fmt: skip


def test_a_program_as_large_as_users_have_arrives_whole(failures: Any) -> None:
    assert failures["program"]["arrived"] == failures["program"]["put"]


def test_of_a_long_output_the_beginning_and_the_end_are_kept(
    failures: Any,
) -> None:
    said = failures["verbose"]
    assert (said["tool"], said["exit_code"], said["stderr"]) == ("sh", 3, "few\n")
    assert (said["begins"], said["ends"]) == ("begun\n", "end\n")
    [between] = said["between"]
    left_out = int(between.removeprefix("\n[").removesuffix(" bytes are left out here]\n"))
    assert said["bytes"] - len(between) + left_out == len("begun\nend\n") + 12 * 1024**2


def test_an_agent_that_does_not_answer_is_an_error_within_its_deadline(failures: Any) -> None:
    assert "guest agent of nas" in failures["silent"]["error"]
    assert failures["silent"]["after_s"] < 40


def test_a_guest_that_panics_is_reported_at_once_with_its_console(failures: Any) -> None:
    assert "nas stopped by itself" in failures["panic"]["error"]
    assert "sysrq" in failures["panic"]["error"].lower()
    assert failures["panic"]["after_s"] < 20


def test_a_full_disk_under_the_shelf_is_distinguished_from_a_fault_of_the_nas(
    stage: Stage, vm_scratch: Path
) -> None:
    found = stage.play(f"{_SCENES}:full_disk", scratch=vm_scratch / "d", deadline_s=_DEADLINE_S)
    assert found["written"] not in (0, None)
    assert "the shelf failed" in found["shelf"]["error"]
    assert "next: free some space" in found["shelf"]["error"]


def test_packets_that_passed_unseen_are_not_taken_for_silence(
    stage: Stage, vm_scratch: Path
) -> None:
    said = stage.play(f"{_OVERFLOW}:overflow", scratch=vm_scratch / "w", deadline_s=_DEADLINE_S)
    assert said["few"] == ""
    assert re.match(r"of \d+ frames that passed lo \d+ were not seen", said["many"]), said
    assert "next: fewer --jobs" in said["many"]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("hung", "the import of the pool hung"),
        ("stopped", "the import of the pool hung"),
        ("panic", "nas stopped by itself: its kernel crashed"),
        ("no-volume", "the volume did not come back"),
    ],
)
def test_a_nas_that_does_not_come_back_is_a_verdict(outages: Any, kind: str, what: str) -> None:
    found = outages[kind]
    assert found["error"] is None
    assert what in found["outage"]["what"]
    assert (found["outage"]["machine"], found["outage"]["stage"]) == ("nas-2", "bring NAS back")
    assert (found["verdict"], found["pool"]["pool"]) == ("unavailable", "unavailable")


def test_an_import_after_a_panic_of_zfs_is_not_waited_for_to_the_end(outages: Any) -> None:
    waited = re.search(r"hung for (\d+) s", outages["stopped"]["outage"]["what"])
    assert waited is not None
    assert int(waited[1]) < 60


def test_an_import_that_was_refused_once_gives_no_log_up(outages: Any) -> None:
    assert outages["no-volume"]["imports"] == [["pool-import", 1], ["pool-import", 0]]


def test_the_stacks_of_hanging_tasks_are_kept(outages: Any) -> None:
    kernel = "\n".join(outages["hung"]["outage"]["kernel"])
    assert "sysrq: Show Blocked State" in kernel


def test_an_agent_that_is_silent_after_the_cut_is_the_machinerys_fault(outages: Any) -> None:
    assert "guest agent of nas" in outages["silent"]["error"]


def test_the_chain_is_proven_before_use_and_the_observations_are_kept(proofs: Any) -> None:
    proof = proofs["none"]
    assert proof["error"] is None
    assert set(proof["proof"]["write_cache"]) == {"nas/data0", "nas/zvol", "client"}
    assert set(proof["proof"]["write_cache"].values()) == {"write back"}
    assert proof["proof"]["flushes"]["data0"] > 0


def test_a_zfs_that_loses_flushes_is_not_taken_for_a_fault_of_the_chain(proofs: Any) -> None:
    proof = proofs["zfs_nocacheflush"]
    assert "settings of the cell are not in effect" in proof["error"], "and not the chain"
    assert proof["proof"]["flushes"] == {"data0": 0}
    detour = proof["proof"]["flushes_without"]
    assert detour["of_client"] > 0
    assert detour["of_volume"] > 0
    assert proof["proof"]["lost_by_zfs"]
    assert detour["of_disks"]["data0"] > 0
    assert proofs["none"]["proof"]["flushes_without"] is None, "no other place was asked"


def test_a_client_that_sends_no_flush_is_refused(proofs: Any) -> None:
    proof = proofs["nobarrier"]
    assert "a flush of the client did not reach the disks" in proof["error"]
    detour = proof["proof"]["flushes_without"]
    assert (detour["of_client"], detour["of_volume"]) == (0, 0)
    assert detour["of_disks"]["data0"] > 0


def test_a_disk_of_large_sectors_is_one_for_the_guest_too(large_disk: Any) -> None:
    assert large_disk["logical_block_size"] == 4096
    assert large_disk["written"]["4096"] == 0
    assert large_disk["written"]["512"] != 0, "a write of less than a sector"


def test_zfs_takes_a_disks_physical_sector_for_its_ashift(stage: Stage, vm_scratch: Path) -> None:
    ashifts = stage.play(f"{_SCENES}:ashifts", scratch=vm_scratch / "a", deadline_s=_DEADLINE_S)
    assert ashifts == {"512": "9", "4096": "12"}


def test_a_diverted_file_is_there_for_the_guest_and_not_on_the_disk(large_disk: Any) -> None:
    diverted = large_disk["diverted"]
    assert diverted["found"] == "new"
    assert diverted["after"]["writes"] == diverted["before"]["writes"] > 0

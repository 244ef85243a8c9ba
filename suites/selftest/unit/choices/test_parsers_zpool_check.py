"""ZFS on the client's disk: what its check printed, recorded whole; cut off, garbled and never turned."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import RECORDED, recording
from torture.choices.filesystems.zfs import CHOICE, parse_zpool_check
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult
from torture.oracles.verdict.guarantee import UnreadableError

GAVE_UP = FsckResult(
    clean=False,
    gave_up=True,
    problems=("cannot import 'vm': one or more devices is currently unavailable",),
)
CLEAN = FsckResult(clean=True)
EXPECTED: dict[str, FsckResult | None] = {
    "clean": CLEAN,
    "one-bad-copy-look": FsckResult(clean=True, problems=("1 error of its disk",)),
    "one-bad-copy-mend": CLEAN,
    "one-bad-copy-after": CLEAN,
    "directory-look": FsckResult(clean=False),
    "directory-mend": FsckResult(clean=False),
    "directory-after": FsckResult(clean=False),
    "two-files-look": FsckResult(clean=False),
    "two-files-mend": FsckResult(clean=False),
    "two-files-after": FsckResult(clean=False),
    "no-import-look": None,
    "no-import-mend": GAVE_UP,
    "no-labels-mend": None,
}


def answer(output: ToolOutput) -> FsckResult | None:
    try:
        return parse_zpool_check(output)
    except UnreadableError:
        return None


def test_every_recording_is_expected_here() -> None:
    assert {path.stem for path in (RECORDED / "zfs").glob("*.json")} == EXPECTED.keys()


@pytest.mark.parametrize("case", EXPECTED)
def test_a_recording_is_understood(case: str) -> None:
    said, expected = answer(recording(f"zfs/{case}")), EXPECTED[case]
    if said is not None and not said.clean and not said.gave_up:
        assert said.problems[0].endswith(" in data")
        said = replace(said, problems=())
    assert said == expected


def with_pool(case: str, **changes: Any) -> ToolOutput:
    output = recording(f"zfs/{case}")
    document = json.loads(output.stdout)
    document["pools"]["vm"] |= changes
    return replace(output, stdout=json.dumps(document))


def test_only_a_scrub_that_came_to_its_end_vouches() -> None:
    scan = json.loads(recording("zfs/clean").stdout)["pools"]["vm"]["scan_stats"]
    nothing: dict[str, str] = {}
    for changed in (nothing, scan | {"state": "CANCELED"}, scan | {"function": "RESILVER"}):
        assert answer(with_pool("clean", scan_stats=changed)) is None


def test_errors_are_reported_wherever_the_status_has_them() -> None:
    one = answer(replace(with_pool("clean", error_count="1"), exit_code=3))
    assert one == FsckResult(clean=False, problems=("1 error in data",))
    disk: dict[str, Any] = json.loads(recording("zfs/clean").stdout)["pools"]["vm"]["vdevs"]
    (leaf,) = disk["vm"]["vdevs"].values()
    leaf["state"] = "DEGRADED"
    degraded = answer(replace(with_pool("clean", vdevs=disk), exit_code=3))
    assert degraded is not None
    assert degraded.clean
    assert degraded.problems[0].startswith("not online: ")


@pytest.mark.parametrize("case", EXPECTED)
def test_one_that_was_stopped_or_said_nothing_is_unreadable(case: str) -> None:
    output = recording(f"zfs/{case}")
    assert answer(replace(output, exit_code=None)) is None
    assert answer(replace(output, exit_code=128 + 9)) is None
    assert answer(replace(output, stdout="", stderr="")) is None


@pytest.mark.parametrize("case", EXPECTED)
def test_output_cut_off_anywhere_never_turns_its_meaning(case: str) -> None:
    output = recording(f"zfs/{case}")
    whole = answer(output)
    for stream in ("stdout", "stderr"):
        text = getattr(output, stream).rstrip()
        for cut in range(0, len(text), max(1, len(text) // 90)):
            assert answer(replace(output, **{stream: text[:cut]})) in (whole, None)


@given(at=st.integers(0, 700), junk=st.text(min_size=1, max_size=8))
def test_garbled_output_never_invents_errors(at: int, junk: str) -> None:
    output = recording("zfs/clean")
    text = output.stdout[:at] + "\x00" + junk + output.stdout[at + 1 + len(junk) :]
    assert answer(replace(output, stdout=text)) is None


def test_a_tool_that_crashes_has_given_up_and_a_fault_of_ours_says_nothing() -> None:
    crashed = answer(replace(recording("zfs/clean"), exit_code=128 + 6))
    assert crashed is not None
    assert crashed.gave_up
    failed = recording("zfs/no-import-mend")
    for words in ("cannot import 'vm': permission denied\n", "sh: 1: zpool: command not found\n"):
        assert answer(replace(failed, stderr=words)) is None
    suspended = "cannot scrub vm: pool I/O is currently suspended\n"
    said = answer(replace(failed, stderr=suspended))
    assert said is not None
    assert (said.gave_up, said.problems) == (True, (suspended.strip(),))


def test_words_and_exit_code_have_to_agree() -> None:
    for code in (1, 2, 3, 255):
        assert answer(replace(recording("zfs/clean"), exit_code=code)) is None
    for case in ("two-files-look", "one-bad-copy-look"):
        assert answer(replace(recording(f"zfs/{case}"), exit_code=0)) is None


def test_the_commands_name_device_and_pool_and_leave_none_imported() -> None:
    zfs = CHOICE.value.on("/dev/vdb")
    check, (repair,) = zfs.check, zfs.repairs
    for argv in (check, repair):
        assert argv[-3:] == ("/dev/vdb", "vm", "-j")
        assert 'zpool export "$2"' in argv[2]
    assert recording("zfs/clean").argv[2] == check[2]
    assert recording("zfs/no-import-mend").argv[2] == repair[2]

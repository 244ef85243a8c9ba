"""The checkers' parsers, on recorded real outputs: whole, cut off anywhere, and garbled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.good_evidence import RECORDED, evidence, recording, tool
from torture.choices.filesystems import AXIS, CHOICES, btrfs
from torture.choices.filesystems.btrfs import parse_btrfs_check
from torture.choices.filesystems.ext4 import parse_e2fsck
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.filesystems.xfs import parse_xfs_repair
from torture.choices.filesystems.zfs import CHOICE, parse_zpool_check
from torture.facts.evidence.folder import Step, ToolOutput
from torture.oracles.verdict.filesystem_verdict import judge_filesystem
from torture.oracles.verdict.fsck import FsckResult
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.records.scoring.judge import judge

PARSERS: dict[str, Callable[[ToolOutput], FsckResult]] = {
    "e2fsck": parse_e2fsck,
    "btrfs": parse_btrfs_check,
    "xfs": parse_xfs_repair,
    "zfs": parse_zpool_check,
}
CLEAN = "clean"
CLEAN_BUT = "clean, with a bad copy"
FALSE_ALARM = "clean, for all the errors that it reports"
ERRORS = "errors"
GAVE_UP = "gave up"
UNREADABLE = "unreadable"
STAGES = ("look", "mend", "after")
BY_STAGE = {
    "e2fsck/dirty-journal": (CLEAN, ERRORS, CLEAN),  # the look has journal_dirty: see below
    "e2fsck/bad-inodes": (ERRORS, ERRORS, CLEAN),
    "e2fsck/root-directory": (GAVE_UP, ERRORS, CLEAN),
    "e2fsck/inode-table": (GAVE_UP, ERRORS, CLEAN),
    "btrfs/fs-tree-wiped": (GAVE_UP, GAVE_UP, GAVE_UP),
    "btrfs/extent-tree-wiped": (GAVE_UP, GAVE_UP, GAVE_UP),
    "btrfs/root-tree-wiped": (GAVE_UP, GAVE_UP, GAVE_UP),
    "btrfs/chunk-tree-wiped": (GAVE_UP, GAVE_UP, GAVE_UP),
    "btrfs/fs-tree-old": (ERRORS, CLEAN_BUT, CLEAN),
    "btrfs/wrong-link-count": (ERRORS, CLEAN_BUT, CLEAN),
    "xfs/free-blocks": (ERRORS, CLEAN_BUT, CLEAN),
    "xfs/inode": (ERRORS, CLEAN_BUT, CLEAN),
    "xfs/free-inodes": (ERRORS, CLEAN_BUT, CLEAN),
    "xfs/superblock": (GAVE_UP, CLEAN_BUT, CLEAN),
    "xfs/no-filesystem": (GAVE_UP, GAVE_UP, GAVE_UP),
}
EXPECTED = {
    "e2fsck/clean": CLEAN,
    "e2fsck/no-filesystem-look": GAVE_UP,
    "e2fsck/no-filesystem-mend": GAVE_UP,
    "e2fsck/no-device": UNREADABLE,
    "btrfs/clean": CLEAN,
    "btrfs/clean-6.14": CLEAN,
    "btrfs/hole-in-log-look": FALSE_ALARM,
    "btrfs/one-bad-copy": CLEAN_BUT,
    "btrfs/no-filesystem-look": GAVE_UP,
    "btrfs/lost-log-look": GAVE_UP,
    "btrfs/lost-log-unanswered": ERRORS,
    "btrfs/lost-log-mend": CLEAN_BUT,
    "btrfs/no-device": UNREADABLE,
    "xfs/clean": CLEAN,
    "xfs/dirty-log-look": ERRORS,
    "xfs/dirty-log-mend": GAVE_UP,
    "xfs/dirty-log-zeroed": CLEAN_BUT,
    "xfs/no-log-head-mend": GAVE_UP,
    "xfs/no-device": UNREADABLE,
    **{
        f"{case}-{stage}": answer
        for case, answers in BY_STAGE.items()
        for stage, answer in zip(STAGES, answers, strict=True)
    },
}


CANNOT_IMPORT = FsckResult(
    clean=False,
    gave_up=True,
    problems=("cannot import 'vm': one or more devices is currently unavailable",),
)
OF_ZFS: dict[str, FsckResult | None] = {
    "zfs/clean": FsckResult(clean=True),
    "zfs/one-bad-copy-look": FsckResult(clean=True, problems=("1 error of its disk",)),
    "zfs/one-bad-copy-mend": FsckResult(clean=True),
    "zfs/one-bad-copy-after": FsckResult(clean=True),
    "zfs/directory-look": FsckResult(clean=False),
    "zfs/directory-mend": FsckResult(clean=False),
    "zfs/directory-after": FsckResult(clean=False),
    "zfs/two-files-look": FsckResult(clean=False),
    "zfs/two-files-mend": FsckResult(clean=False),
    "zfs/two-files-after": FsckResult(clean=False),
    "zfs/no-import-look": None,
    "zfs/no-import-mend": CANNOT_IMPORT,
    "zfs/no-labels-mend": None,
}


RECORDINGS = {case: recording(case) for case in EXPECTED}


def parse(case: str, output: ToolOutput) -> FsckResult:
    return PARSERS[case.split("/")[0]](output)


def answer(case: str, output: ToolOutput) -> str:
    try:
        result = parse(case, output)
    except UnreadableError:
        return UNREADABLE
    if result.clean and output.exit_code == 1 and case.startswith("btrfs/"):
        return FALSE_ALARM
    if result.clean:
        return CLEAN_BUT if result.problems else CLEAN
    return GAVE_UP if result.gave_up else ERRORS


def never_turns(before: str, after: str) -> bool:
    """Damaged output may become unreadable; good news never becomes bad, nor bad news good.

    A false alarm that is not whole any more may be an error.
    """
    if after == UNREADABLE or before == FALSE_ALARM:
        return True
    good = (CLEAN, CLEAN_BUT, FALSE_ALARM)
    return before != UNREADABLE and (before in good) == (after in good)


def test_every_recording_is_expected_here() -> None:
    found = {
        f"{path.parent.name}/{path.stem}"
        for tool in PARSERS
        for path in (RECORDED / tool).glob("*.json")
    }
    assert found == {*EXPECTED, *OF_ZFS}


@pytest.mark.parametrize("case", EXPECTED)
def test_a_recording_is_understood(case: str) -> None:
    assert answer(case, RECORDINGS[case]) == EXPECTED[case]


@pytest.mark.parametrize(
    ("case", "line"),
    [
        ("e2fsck/no-filesystem-look", "DEVICE is mounted."),
        ("e2fsck/no-filesystem-look", "DEVICE is in use."),
        ("btrfs/fs-tree-old-look", "ERROR: DEVICE is currently mounted, use --force if you"),
        ("xfs/inode-look", "xfs_repair: DEVICE contains a mounted filesystem"),
        ("xfs/inode-look", "xfs_repair: cannot open DEVICE: Device or resource busy"),
    ],
)  # fmt: skip
def test_a_device_that_is_in_use_is_no_damage_but_its_content_may_be(case: str, line: str) -> None:
    """As e2fsprogs `e2fsck/unix.c`, btrfs-progs `check/main.c` and xfsprogs `libxfs/init.c` say it."""
    output = RECORDINGS[case]
    for device, expected in ((output.argv[-1], UNREADABLE), ("inode 262976", EXPECTED[case])):
        said = line.replace("DEVICE", device)
        assert answer(case, replace(output, stderr=f"{said}\n{output.stderr}")) == expected


@pytest.mark.parametrize("case", [*EXPECTED, *OF_ZFS])
def test_a_tool_that_was_stopped_or_said_nothing_is_unreadable(case: str) -> None:
    output = recording(case)
    for how in ({"exit_code": None}, {"exit_code": 128 + 9}, {"stdout": "", "stderr": ""}):
        with pytest.raises(UnreadableError):
            parse(case, replace(output, **how))


@pytest.mark.parametrize("case", EXPECTED)
def test_output_cut_off_anywhere_never_turns_its_meaning(case: str) -> None:
    output = RECORDINGS[case]
    for stream in ("stdout", "stderr"):
        text = getattr(output, stream)
        for cut in range(0, len(text), max(1, len(text) // 60)):
            partial = replace(output, **{stream: text[:cut]})
            assert never_turns(EXPECTED[case], answer(case, partial)), (stream, cut)


@given(
    case=st.sampled_from(sorted(EXPECTED)),
    at=st.floats(0, 1),
    junk=st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=30),
)
@settings(max_examples=examples(300), deadline=None)
def test_garbled_output_never_turns_its_meaning(case: str, at: float, junk: str) -> None:
    output = RECORDINGS[case]
    for stream in ("stdout", "stderr"):
        text = getattr(output, stream)
        place = int(at * len(text))
        garbled = replace(output, **{stream: text[:place] + junk + text[place + len(junk) :]})
        assert never_turns(EXPECTED[case], answer(case, garbled))


@pytest.mark.parametrize("case", [case for case, said in EXPECTED.items() if said == CLEAN])
def test_a_clean_text_with_a_bad_exit_code_is_not_clean(case: str) -> None:
    for code in (1, 4, 8, 12, 16):
        assert answer(case, replace(RECORDINGS[case], exit_code=code)) in (UNREADABLE, ERRORS)


@pytest.mark.parametrize("case", [case for case, said in EXPECTED.items() if said == ERRORS])
def test_a_text_of_errors_with_a_good_exit_code_is_not_clean(case: str) -> None:
    assert answer(case, replace(RECORDINGS[case], exit_code=0)) in (UNREADABLE, CLEAN_BUT)


def test_a_tool_that_crashes_has_given_up() -> None:
    for case in ("e2fsck/bad-inodes-mend", "btrfs/fs-tree-old-mend", "xfs/inode-mend"):
        crashed = replace(RECORDINGS[case], exit_code=128 + 6)
        assert answer(case, crashed) == GAVE_UP


def test_e2fsck_says_that_it_looked_past_the_journal_or_replayed_it() -> None:
    look, mend = (RECORDINGS[f"e2fsck/dirty-journal-{what}"] for what in ("look", "mend"))
    assert look.exit_code == 0
    assert parse_e2fsck(look).journal_dirty
    assert parse_e2fsck(mend).journal_replayed
    assert not parse_e2fsck(mend).journal_dirty


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("address 0x1000 ", "address 0x100000 "),
        ("address 0x1000 ", "address 0xd00000 "),
        (
            "ERROR: errors found in log\n",
            "ERROR: errors found in log\nERROR: errors found in fs roots\n",
        ),
        ("ERROR: errors found in log\n", ""),
        ("ERROR: csum missing in log", "ERROR: csum missing"),
        ("ERROR: csum missing in log", "csums in log"),
    ],
)
def test_data_without_checksums_in_the_log_are_errors(said: str, instead: str) -> None:
    look = RECORDINGS["btrfs/hole-in-log-look"]
    assert said in look.stderr
    assert not parse_btrfs_check(replace(look, stderr=look.stderr.replace(said, instead))).clean


def test_xfs_repair_says_that_the_log_is_dirty() -> None:
    for what in ("look", "mend"):
        assert parse_xfs_repair(RECORDINGS[f"xfs/dirty-log-{what}"]).journal_dirty
    assert not parse_xfs_repair(RECORDINGS["xfs/inode-look"]).journal_dirty


def test_summaries_quote_the_first_problem() -> None:
    old = parse_btrfs_check(RECORDINGS["btrfs/fs-tree-old-look"])
    assert old.summary.startswith("errors: parent transid verify failed on 30441472")
    assert "more)" in old.summary
    assert parse_xfs_repair(RECORDINGS["xfs/clean"]).summary == CLEAN
    bad_copy = parse_btrfs_check(RECORDINGS["btrfs/one-bad-copy"])
    assert bad_copy.summary.startswith("clean, but: checksum verify failed")


# The differences between filesystems that share a checker, and findings from before a mount.

DEVICE = "/dev/vdb"


def test_ext4_with_a_journal_of_data_differs_by_its_mount_only() -> None:
    plain, journal = (AXIS.choice(name).value.on(DEVICE) for name in ("ext4", "ext4journal"))
    assert journal.mount == (
        "mount", "-t", "ext4", "-o", "data=journal", DEVICE, MOUNT_POINT,
    )  # fmt: skip
    assert journal.make == plain.make
    assert journal.check == plain.check
    assert journal.repairs == plain.repairs
    assert journal.read_check is plain.read_check


@pytest.mark.parametrize("name", [choice.name for choice in CHOICES if choice.value.has_files])
def test_every_command_of_a_filesystem_names_its_device(name: str) -> None:
    (filesystem,) = [choice.value.on(DEVICE) for choice in CHOICES if choice.name == name]
    commands = (
        filesystem.make,
        filesystem.mount,
        filesystem.check,
        *filesystem.repairs,
    )
    assert all(DEVICE in command for command in commands)
    assert MOUNT_POINT in filesystem.mount


def test_only_filesystems_without_a_journal_of_data_are_audited_block_by_block() -> None:
    written_twice = {choice.name for choice in CHOICES if not choice.value.writes_once}
    assert written_twice == {"ext4journal", "zfs"}
    assert {choice.name for choice in CHOICES if choice.value.looks_like_zfs} == {"zfs"}


def test_filesystems_join_a_matrix_on_purpose() -> None:
    assert {choice.name for choice in CHOICES if choice.joins} == {
        "btrfs",
        "ext4",
        "xfs",
        "raw",
        "files",
    }


# Findings from before the mount are reported, although the mount repaired them.

READ = btrfs.CHOICE.value.read_check


def test_findings_of_the_first_look_alone_were_healed_at_the_mount() -> None:
    first = tool(Step.FS_FIRST_CHECK, "btrfs/fs-tree-old-look")
    finding = judge_filesystem(evidence(first), READ)
    assert finding.verdict is Verdict.REPAIRED
    assert finding.reasons[0].startswith("fs-first-check: ")
    assert finding.reasons[0].endswith("healed at mount")
    judgement = judge(evidence(first))
    assert (judgement.verdict, judgement.filesystem) == (Verdict.REPAIRED, Verdict.REPAIRED)


def test_a_bad_copy_beside_a_good_one_is_found_though_it_vouches() -> None:
    clean = tool(Step.FS_FIRST_CHECK, "btrfs/clean")
    line = "checksum verify failed on 30523392 wanted 0xd2dabd05 found 0x1a6c8e79\n"
    bad_copy = replace(clean, stderr=line + clean.stderr)
    assert judge_filesystem(evidence(bad_copy), READ).verdict is Verdict.REPAIRED


@pytest.mark.parametrize("case", ["clean", "clean-6.14"])
def test_a_clean_first_look_or_none_changes_nothing(case: str) -> None:
    alone = judge_filesystem(evidence(), READ)
    assert judge_filesystem(evidence(tool(Step.FS_FIRST_CHECK, f"btrfs/{case}")), READ) == alone
    assert alone.verdict is Verdict.INTACT


def test_a_first_look_that_cannot_be_read_leaves_the_trial_open() -> None:
    garbled = tool(Step.FS_FIRST_CHECK, "btrfs/clean", stdout="", stderr="")
    (why,) = judge_filesystem(evidence(garbled), READ).unknown
    assert "fs-first-check" in why
    assert judge(evidence(garbled)).verdict is Verdict.INCONCLUSIVE


def test_only_a_filesystem_that_can_be_checked_before_its_replay_is_looked_at_first() -> None:
    first_check = btrfs.CHOICE.value.on(DEVICE).first_check
    assert first_check == ("btrfs", "check", "--readonly", DEVICE)
    assert [AXIS.choice(other).value.first_check for other in ("ext4", "xfs")] == [None, None]


# ZFS on the client's disk: what its check printed.


def zfs_answer(output: ToolOutput) -> FsckResult | None:
    try:
        return parse_zpool_check(output)
    except UnreadableError:
        return None


@pytest.mark.parametrize("case", OF_ZFS)
def test_a_recording_of_zfs_is_understood(case: str) -> None:
    said, expected = zfs_answer(recording(case)), OF_ZFS[case]
    if said is not None and not said.clean and not said.gave_up:
        assert said.problems[0].endswith(" in data")
        said = replace(said, problems=())
    assert said == expected


def with_pool(**changes: Any) -> ToolOutput:
    output = recording("zfs/clean")
    document = json.loads(output.stdout)
    document["pools"]["vm"] |= changes
    return replace(output, stdout=json.dumps(document))


def test_only_a_scrub_that_came_to_its_end_vouches() -> None:
    scan = json.loads(with_pool().stdout)["pools"]["vm"]["scan_stats"]
    nothing: dict[str, str] = {}
    for changed in (nothing, scan | {"state": "CANCELED"}, scan | {"function": "RESILVER"}):
        assert zfs_answer(with_pool(scan_stats=changed)) is None


def test_errors_are_reported_wherever_the_status_has_them() -> None:
    one = zfs_answer(replace(with_pool(error_count="1"), exit_code=3))
    assert one == FsckResult(clean=False, problems=("1 error in data",))
    disk = json.loads(with_pool().stdout)["pools"]["vm"]["vdevs"]
    (leaf,) = disk["vm"]["vdevs"].values()
    leaf["state"] = "DEGRADED"
    degraded = zfs_answer(replace(with_pool(vdevs=disk), exit_code=3))
    assert degraded is not None
    assert degraded.clean
    assert degraded.problems[0].startswith("not online: ")


@pytest.mark.parametrize("case", OF_ZFS)
def test_output_of_zfs_cut_off_anywhere_never_turns_its_meaning(case: str) -> None:
    output = recording(case)
    whole = zfs_answer(output)
    for stream in ("stdout", "stderr"):
        text = getattr(output, stream).rstrip()
        for cut in range(0, len(text), max(1, len(text) // 90)):
            assert zfs_answer(replace(output, **{stream: text[:cut]})) in (whole, None)


@given(at=st.integers(0, 700), junk=st.text(min_size=1, max_size=8))
def test_garbled_output_of_zfs_never_invents_errors(at: int, junk: str) -> None:
    output = recording("zfs/clean")
    text = output.stdout[:at] + "\x00" + junk + output.stdout[at + 1 + len(junk) :]
    assert zfs_answer(replace(output, stdout=text)) is None


def test_a_zpool_that_crashes_has_given_up_and_a_fault_of_ours_says_nothing() -> None:
    crashed = zfs_answer(replace(recording("zfs/clean"), exit_code=128 + 6))
    assert crashed is not None
    assert crashed.gave_up
    failed = recording("zfs/no-import-mend")
    for words in ("cannot import 'vm': permission denied\n", "sh: 1: zpool: command not found\n"):
        assert zfs_answer(replace(failed, stderr=words)) is None
    suspended = "cannot scrub vm: pool I/O is currently suspended\n"
    said = zfs_answer(replace(failed, stderr=suspended))
    assert said is not None
    assert (said.gave_up, said.problems) == (True, (suspended.strip(),))


def test_words_and_exit_code_of_zpool_have_to_agree() -> None:
    for code in (1, 2, 3, 255):
        assert zfs_answer(replace(recording("zfs/clean"), exit_code=code)) is None
    for case in ("two-files-look", "one-bad-copy-look"):
        assert zfs_answer(replace(recording(f"zfs/{case}"), exit_code=0)) is None


def test_the_commands_name_device_and_pool_and_leave_none_imported() -> None:
    zfs = CHOICE.value.on("/dev/vdb")
    check, (repair,) = zfs.check, zfs.repairs
    for argv in (check, repair):
        assert argv[-3:] == ("/dev/vdb", "vm", "-j")
        assert 'zpool export "$2"' in argv[2]
    assert recording("zfs/clean").argv[2] == check[2]
    assert recording("zfs/no-import-mend").argv[2] == repair[2]

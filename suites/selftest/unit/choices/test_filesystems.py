"""The differences between filesystems that share a checker, and findings from before a mount."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import evidence, tool
from torture.choices.filesystems import AXIS, CHOICES, btrfs
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.facts.evidence.folder import Step
from torture.oracles.verdict.filesystem_verdict import judge_filesystem
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

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
    assert btrfs.CHOICE.value.on("/dev/vdb").first_check == (
        "btrfs",
        "check",
        "--readonly",
        "/dev/vdb",
    )
    assert [AXIS.choice(other).value.first_check for other in ("ext4", "xfs")] == [None, None]

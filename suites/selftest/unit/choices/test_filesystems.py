"""The differences between filesystems that share a checker, and rules for all of them."""

from __future__ import annotations

import pytest

from torture.choices.filesystems import AXIS, CHOICES
from torture.choices.filesystems.protocol import MOUNT_POINT

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

"""A filesystem that is always well."""

from __future__ import annotations

from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult


def read_check(output: ToolOutput) -> FsckResult:
    """It is clean when its checker says nothing."""
    return FsckResult(clean=output.exit_code == 0)


CHOICE: Choice[Filesystem] = Choice(
    name="dummyfs",
    value=Filesystem(
        make=("mkfs.dummy", DEVICE),
        mount=("mount", "-t", "dummy", DEVICE, MOUNT_POINT),
        scrub=("scrub.dummy", MOUNT_POINT),
        check=("fsck.dummy", DEVICE),
        repairs=(),
        read_check=read_check,
    ),
    words="a dummy filesystem",
)

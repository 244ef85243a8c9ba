"""A repair is judged by what it left, in whatever words it ended; but it has to have worked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import EVERYTHING, REPAIR, evidence, read, tool, without
from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

REFUSED = tool(Step.FS_MOUNT, "mount/refused-needs-cleaning")
REFUSED_AGAIN = tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/refused-needs-cleaning")
BTRFS_WORDS = """\
parent transid verify failed on 30441472 wanted 12 found 9
Ignoring transid failure
ERROR: child eb corrupted: parent bytenr=30605312 item=1 parent level=1 child bytenr=30441472
ERROR: failed to repair root items: Input/output error
"""
"""The output of btrfs-progs `check/main.c`, without a closing line."""
XFS_WORDS = """\
Metadata corruption detected at 0x55d0, inode 0x83 dinode

fatal error -- couldn't map inode 131, err = 117
"""
"""The output of xfsprogs `repair/phase6.c` as it gives up."""
NO_MEMORY = "ERROR: cannot allocate memory\n"


def repaired(stderr: str, *, exit_code: int | None = 1, mounts: bool = False) -> Evidence:
    """Of a btrfs that does not mount: a repair that ended so, and what came after it."""
    said = replace(REPAIR[1], exit_code=exit_code, stdout="", stderr=stderr)
    after = REPAIR[2:] if mounts else (REFUSED_AGAIN,)
    made = evidence(REFUSED, said, *after, filesystem="btrfs", found=None)
    made = without(made, Step.FS_UMOUNT, Step.FS_CHECK)
    return read(made, EVERYTHING, after_repair=True) if mounts else made


@pytest.mark.parametrize("words", [BTRFS_WORDS, "ERROR: in words of tomorrow\n", ""])
def test_a_filesystem_that_does_not_mount_after_a_repair_is_unrepairable(words: str) -> None:
    judgement = judge(repaired(words))
    assert judgement.verdict is judgement.filesystem is Verdict.UNREPAIRABLE
    assert judgement.lost == judgement.acknowledged > 0


def test_xfs_gives_up_in_words_of_its_own() -> None:
    said = replace(tool(Step.FS_REPAIR, "xfs/free-blocks-mend"), exit_code=1, stderr=XFS_WORDS)
    made = evidence(REFUSED, said, REFUSED_AGAIN, filesystem="xfs", found=None)
    judgement = judge(without(made, Step.FS_UMOUNT, Step.FS_CHECK))
    assert judgement.verdict is Verdict.UNREPAIRABLE


def test_a_filesystem_that_mounts_and_is_clean_afterwards_is_repaired() -> None:
    judgement = judge(repaired(BTRFS_WORDS, mounts=True))
    assert (judgement.verdict, judgement.lost) == (Verdict.REPAIRED, 0)


@pytest.mark.parametrize(("words", "exit_code"), [(NO_MEMORY, 1), (BTRFS_WORDS, 137)])
def test_a_repair_that_could_not_work_proves_no_more_than_the_refused_mount(
    words: str, exit_code: int
) -> None:
    assert judge(repaired(words, exit_code=exit_code)).verdict is Verdict.REPAIRED

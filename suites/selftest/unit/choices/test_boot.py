"""A client whose root is on the NAS's disk: which cells have one, and what it is worth that it boots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    OLD,
    REPAIR,
    WONT_MOUNT,
    evidence,
    ledger,
    read,
    tool,
    without,
)
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import FATE, FILESYSTEM, ROOT, SYNC, Cell, cells_of
from torture.facts.axes.fate import Fate
from torture.facts.axes.root import Root
from torture.facts.axes.sweeps import Matrix
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.boot_verdict import (
    end_of_console,
    fsck_at_boot,
    last_words,
    parse_boot,
)
from torture.oracles.verdict.fsck import Attempt
from torture.oracles.verdict.guarantee import Guarantee, UnreadableError, Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.scoring.judge import judge

CELL = "iscsi-always-noslog-ext4-boot-bothdie"
FSCK = """
torture: fsck of /dev/vdb
/dev/vdb: recovering journal
/dev/vdb: clean, 6189/32768 files, 72421/131072 blocks

torture: fsck ended with 0
"""
UP = f"{FSCK}torture: 5.36 s: starting client\ntorture: 7.91 s: the agent comes next\ntorture: ready\n"
DOWN = """
torture: fsck of /dev/vdb
fsck.ext4: Bad magic number in super-block while trying to open /dev/vdb

torture: fsck ended with 8
mount: mounting /dev/vdb on /own failed: Invalid argument
[    4.402111] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000ff00
[    4.410003] CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12
"""
PANICKED = "its kernel gave up"


def boot(step: Step, console: str, why: str = "", **changes: Any) -> ToolOutput:
    said: dict[str, Any] = {"exit_code": 1 if why else 0, "stdout": console, "stderr": why}
    return tool(step, "boot/replayed", **(said | changes))


def fsck(said: str = FSCK, *, exit_code: int | None = 0) -> ToolOutput:
    lines = "\n".join(line for line in said.splitlines() if "torture:" not in line).strip()
    return boot(Step.BOOT_FSCK, lines, name="fsck", argv=("fsck", "-a"), exit_code=exit_code)


BOOTS = (boot(Step.BOOT, UP), fsck())
DIES = (boot(Step.BOOT, DOWN, PANICKED), fsck(DOWN, exit_code=8))
BOOTS_AFTER = boot(Step.BOOT_AFTER_REPAIR, UP)
DIES_AFTER = boot(Step.BOOT_AFTER_REPAIR, DOWN, PANICKED)


def booted(*tools: ToolOutput, found: str | None = EVERYTHING) -> Evidence:
    made = evidence(*tools, found=found)
    return replace(made, spec=made.spec | {"cell": "iscsi-standard-noslog-btrfs-boot-nasonly"})


def parts(judgement: Judgement) -> tuple[Verdict | None, ...]:
    return (judgement.verdict, judgement.filesystem, judgement.data)


def test_a_name_says_it_behind_the_filesystem_and_only_where_it_is_so() -> None:
    cell = Cell.parse(CELL)
    assert cell[ROOT] is Root.BOOT
    assert cell.but(root=Root.IMAGE).name == CELL.replace("-boot", "")
    assert Cell.parse("iscsi-always-noslog-ext4-bothdie")[ROOT] is Root.IMAGE


@pytest.mark.parametrize("transport", ["iscsi", "fileio", "fileio_wb", "nfs_image"])
@pytest.mark.parametrize("filesystem", ["btrfs", "ext4", "ext4journal", "xfs"])
def test_a_client_boots_from_any_disk_of_its_qemu(transport: str, filesystem: str) -> None:
    cell = Cell.parse(CELL).but(transport=transport, filesystem=filesystem)
    assert cell.axes["root"] == "boot"
    words = cell[FILESYSTEM].root_words
    assert words is not None
    assert words.startswith(f"rootfstype={filesystem.removesuffix('journal')}")


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        (
            {"transport": "iscsi_guest"},
            "'boot' needs a disk of the client's QEMU, and 'iscsi_guest'",
        ),
        ({"transport": "nvme_tcp"}, "'boot' needs a disk of the client's QEMU, and 'nvme_tcp'"),
        ({"transport": "nfs4", "filesystem": "files"}, "'boot' needs a disk of the client's QEMU"),
        (
            {"filesystem": "raw"},
            "'boot' needs a filesystem that can be a kernel's root, and 'raw'",
        ),
        (
            {"filesystem": "zfs"},
            "'boot' needs a filesystem that can be a kernel's root, and 'zfs'",
        ),
    ],
)
def test_a_root_that_no_kernel_could_mount_is_refused(choices: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cell.parse(CELL).but(**choices)


def test_its_matrix_has_safe_cells_and_lossy_ones_on_three_filesystems() -> None:
    cells = cells_of(Matrix.BOOT)
    assert {cell[ROOT] for cell in cells} == {Root.BOOT}
    assert {cell.axes["filesystem"] for cell in cells} == {"btrfs", "ext4", "xfs"}
    fates = (Fate.BOTH_DIE, Fate.NAS_ONLY)
    assert {(cell[SYNC], cell[FATE]) for cell in cells} == {(s, f) for s in Sync for f in fates}
    assert {guarantee_of(cell) for cell in cells} == {
        Guarantee.SAFE, Guarantee.ROLLS_BACK, Guarantee.LOSES,
    }  # fmt: skip
    assert not {cell.name for cell in cells} & {cell.name for cell in cells_of(Matrix.FULL)}


def test_where_the_root_is_changes_no_guarantee() -> None:
    for cell in cells_of(Matrix.BOOT):
        assert guarantee_of(cell) is guarantee_of(cell.but(root=Root.IMAGE))


def test_the_output_of_fsck_at_boot_is_on_the_console() -> None:
    found = fsck_at_boot(UP)
    assert found is not None
    assert (found.device, found.exit_code) == ("/dev/vdb", 0)
    assert found.said.splitlines() == FSCK.strip().splitlines()[1:3]
    assert fsck_at_boot(DOWN.replace("\n", "\r\n")) == fsck_at_boot(DOWN)


def test_an_fsck_that_says_nothing_has_an_exit_code_all_the_same() -> None:
    found = fsck_at_boot("torture: fsck of /dev/vdb\n\ntorture: fsck ended with 0\n")
    assert found is not None
    assert (found.exit_code, found.said) == (0, "")


@pytest.mark.parametrize("case", ["replayed", "no-superblock"])
def test_a_recorded_console_has_the_recorded_report_of_fsck(case: str) -> None:
    console, said = tool(Step.BOOT, f"boot/{case}"), tool(Step.BOOT_FSCK, f"boot/{case}-fsck")
    found = fsck_at_boot(console.stdout)
    assert found is not None
    assert (found.device, found.exit_code, found.said) == (
        "/dev/vdb",
        said.exit_code,
        said.stdout,
    )


def test_recorded_boots_are_distinguished() -> None:
    assert parse_boot(tool(Step.BOOT, "boot/replayed")) == Attempt(is_done=True)
    assert parse_boot(tool(Step.BOOT, "boot/no-superblock")) == Attempt(
        is_done=False,
        reason="mount: mounting /dev/vdb on /own failed: Invalid argument (its kernel gave up)",
    )


@given(st.integers(0, len(FSCK) - 1))
def test_a_console_that_ends_before_fsck_did_tells_of_none(length: int) -> None:
    assert fsck_at_boot(FSCK[:length]) is None


def test_last_words_are_those_before_the_kernels_own() -> None:
    assert last_words(DOWN) == "mount: mounting /dev/vdb on /own failed: Invalid argument"
    assert last_words(UP) == "torture: ready"
    assert last_words("") == ""
    assert last_words("[    1.0] BUG: unable to handle page fault\n") == ""


def test_of_an_init_that_ended_its_own_last_lines_are_shown_too() -> None:
    assert end_of_console(DOWN, lines=2) == [
        "torture: fsck ended with 8",
        "mount: mounting /dev/vdb on /own failed: Invalid argument",
        "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000ff00",
        "[    4.410003] CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12",
    ]


def test_of_another_death_only_the_kernels_report_is_shown() -> None:
    crash = "torture: ready\n[    9.1] BUG: kernel NULL pointer\n[    9.2] CPU: 0\n[    9.3] more\n"
    assert end_of_console(crash, lines=2) == ["BUG: kernel NULL pointer", "[    9.2] CPU: 0"]


def test_of_a_guest_whose_kernel_did_not_die_the_last_lines_are_shown() -> None:
    assert end_of_console(UP, lines=2) == [
        "torture: 7.91 s: the agent comes next",
        "torture: ready",
    ]
    assert end_of_console("", lines=2) == []


@pytest.mark.parametrize(
    "output",
    [
        boot(Step.BOOT, UP, exit_code=None),
        boot(Step.BOOT, UP, exit_code=2),
        boot(Step.BOOT, FSCK),
        boot(Step.BOOT, ""),
        boot(Step.BOOT, UP, PANICKED, exit_code=0),
        boot(Step.BOOT, DOWN, exit_code=1),
        boot(Step.BOOT, DOWN, PANICKED, exit_code=2),
    ],
)
def test_a_boot_that_contradicts_itself_is_no_evidence(output: ToolOutput) -> None:
    with pytest.raises(UnreadableError, match="boot"):
        parse_boot(output)
    assert judge(booted(output, fsck())).verdict is Verdict.INCONCLUSIVE


def test_a_vm_that_boots_from_a_sound_disk_is_intact_though_its_journal_was_replayed() -> None:
    judgement = judge(booted(*BOOTS))
    assert parts(judgement) == (Verdict.INTACT,) * 3
    orphans = FSCK.replace("clean,", "Clearing orphaned inode 12 (uid=0, gid=0)\n/dev/vdb: clean,")
    once = judge(booted(boot(Step.BOOT, UP), fsck(orphans, exit_code=1)))
    assert parts(once) == (Verdict.INTACT,) * 3


@pytest.mark.parametrize("exit_code", [1, 2, 3, 8])
def test_a_repair_by_fsck_at_boot_counts_as_repaired_and_is_reported(exit_code: int) -> None:
    said = "/dev/vdb:\n/dev/vdb: Inode 12 has a bad extent. FIXED."
    mended = fsck(said, exit_code=exit_code)
    judgement = judge(booted(boot(Step.BOOT, UP), mended))
    assert parts(judgement) == (Verdict.REPAIRED, Verdict.REPAIRED, Verdict.INTACT)
    assert judgement.reasons == ("boot-fsck: /dev/vdb: Inode 12 has a bad extent. FIXED.",)
    silent = judge(booted(boot(Step.BOOT, UP), fsck("", exit_code=exit_code)))
    assert silent.verdict is Verdict.REPAIRED
    assert f"boot-fsck: it returned {exit_code}" in silent.reasons


def test_bad_copies_that_the_booted_kernel_met_are_repaired() -> None:
    judgement = judge(booted(*BOOTS, tool(Step.BOOT_DMESG, "kernel/csum-failed")))
    assert judgement.filesystem is Verdict.REPAIRED
    assert any("boot-dmesg: " in reason and "csum failed" in reason for reason in judgement.reasons)


@pytest.mark.parametrize("spoilt", [fsck(exit_code=None), fsck(exit_code=4), None])
def test_a_vm_that_came_up_past_an_fsck_that_forbids_it_is_no_evidence(
    spoilt: ToolOutput | None,
) -> None:
    made = booted(boot(Step.BOOT, UP), *(() if spoilt is None else (spoilt,)))
    assert judge(made).verdict is Verdict.INCONCLUSIVE


def test_without_a_boot_nothing_is_vouched_for() -> None:
    judgement = judge(booted())
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "boot was never run" in judgement.reasons[0]
    assert judge(evidence()).verdict is Verdict.INTACT, "a client of another root needs none"


def test_a_vm_that_does_not_boot_is_lost_though_a_checker_vouches_for_its_disk() -> None:
    judgement = judge(booted(*DIES, DIES_AFTER))
    assert parts(judgement) == (Verdict.UNREPAIRABLE, Verdict.UNREPAIRABLE, Verdict.INTACT)
    assert judgement.fsck.startswith(
        "does not boot: mount: mounting /dev/vdb on /own failed: Invalid argument (its kernel gave up)"
    )


def test_a_vm_that_boots_at_the_second_try_is_repaired() -> None:
    judgement = judge(booted(*DIES, BOOTS_AFTER))
    assert parts(judgement) == (Verdict.REPAIRED, Verdict.REPAIRED, Verdict.INTACT)
    assert judgement.fsck.startswith("does not boot: mount: ")
    assert judgement.fsck.endswith("clean; boots then")


def test_a_vm_that_boots_once_a_rescue_system_has_mended_its_disk_is_repaired() -> None:
    made = read(booted(*DIES, *REPAIR, BOOTS_AFTER), EVERYTHING, after_repair=True)
    assert parts(judge(made)) == (Verdict.REPAIRED, Verdict.REPAIRED, Verdict.INTACT)
    lost = judge(read(made, OLD, after_repair=True))
    assert (lost.verdict, lost.data) == (Verdict.CORRUPTED, Verdict.CORRUPTED)


def test_a_mended_disk_from_which_no_vm_boots_is_unrepairable() -> None:
    made = read(booted(*DIES, *REPAIR, DIES_AFTER), EVERYTHING, after_repair=True)
    assert parts(judge(made))[:2] == (Verdict.UNREPAIRABLE, Verdict.UNREPAIRABLE)
    came_up_before = read(booted(*BOOTS, *REPAIR, DIES_AFTER), EVERYTHING, after_repair=True)
    assert judge(came_up_before).verdict is Verdict.UNREPAIRABLE


def test_a_repair_or_a_failed_boot_asks_for_another_boot() -> None:
    repaired = read(booted(*BOOTS, *REPAIR), EVERYTHING, after_repair=True)
    for made in (repaired, booted(*DIES)):
        judgement = judge(made)
        assert judgement.verdict is Verdict.REPAIRED, "at least"
        assert "boot-after-repair was never run" in " ".join(judgement.reasons)


def test_a_root_that_nothing_mounts_is_lost_with_all_that_was_acknowledged() -> None:
    judgement = judge(booted(*DIES, *WONT_MOUNT, found=None))
    assert parts(judgement) == (Verdict.UNREPAIRABLE, Verdict.UNREPAIRABLE, None)
    assert judgement.lost == judgement.acknowledged == ledger().acknowledged
    assert judgement.fsck.startswith("does not boot (mount: mounting /dev/vdb on /own failed")


def test_a_disk_that_failed_the_vm_on_a_whole_pool_is_the_machinerys() -> None:
    failing = DOWN.replace(
        "mount:", "[    4.1] I/O error, dev vdb, sector 2048 op 0x0:(READ)\nmount:"
    )
    first = booted(boot(Step.BOOT, failing, PANICKED), DIES[1], DIES_AFTER)
    second = booted(*DIES, boot(Step.BOOT_AFTER_REPAIR, failing, PANICKED))
    assert [judge(made).verdict for made in (first, second)] == [Verdict.INCONCLUSIVE] * 2


def test_a_client_that_lost_its_root_in_the_outage_was_stranded() -> None:
    lost = boot(Step.CLIENT_LOST_ROOT, DOWN, PANICKED, name="console")
    judgement = judge(booted(*BOOTS, lost))
    assert parts(judgement) == (Verdict.OFFLINE, Verdict.INTACT, Verdict.OFFLINE)
    why = f"the client lost its root, and came back as a new client attached it: {PANICKED}"
    assert why in judgement.reasons
    assert judge(without(booted(*BOOTS, lost), Step.CLIENT_LOST_ROOT)).verdict is Verdict.INTACT

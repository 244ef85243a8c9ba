"""The judge: evidence put together from recorded outputs, and the verdict that must follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import (
    DATA_ERRORS,
    EVERYTHING,
    MIXED,
    OLD,
    REPAIR,
    SCRUB,
    STATUS,
    WONT_MOUNT,
    evidence,
    failed_disk,
    ledger,
    otherwise,
    read,
    readback,
    tool,
    without,
)
from torture.facts.evidence.folder import IMPORTS, Evidence, Step, ToolOutput
from torture.facts.evidence.ledger import Hello, Ledger
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.scoring.judge import judge


def subs(judgement: Judgement) -> tuple[Verdict | None, ...]:
    return (judgement.pool, judgement.filesystem, judgement.data)


@pytest.mark.parametrize("filesystem", ["btrfs", "ext4", "xfs"])
def test_everything_there_and_clean_is_intact(filesystem: str) -> None:
    judgement = judge(evidence(filesystem=filesystem))
    assert judgement.verdict is Verdict.INTACT
    assert subs(judgement) == (Verdict.INTACT,) * 3
    assert (judgement.acknowledged, judgement.lost, judgement.findings.rollback_ms) == (6, 0, None)
    assert (judgement.fsck, judgement.pool_summary) == ("clean", "ONLINE")


def test_a_journal_replay_is_allowed_and_reported() -> None:
    judgement = judge(evidence(tool(Step.CHECK_DMESG, "kernel/log-replayed")))
    assert judgement.verdict is Verdict.INTACT
    assert judgement.fsck == "clean, journal replayed"


def test_a_raw_disk_has_no_filesystem_to_score() -> None:
    hello = Hello(t_ms=0.0, trial=7, mode="raw")
    raw = Ledger(events=(hello, *ledger().events[1:]))
    found = EVERYTHING.replace('"files", "trial"', '"raw", "trial"')
    judgement = judge(evidence(filesystem="raw", found=found, ledger=raw))
    assert judgement.verdict is Verdict.INTACT
    assert subs(judgement) == (Verdict.INTACT, None, Verdict.INTACT)
    stale = found.replace("[4]", "[1]")
    assert judge(evidence(filesystem="raw", found=stale, ledger=raw)).verdict is Verdict.CORRUPTED


def test_an_old_state_is_rolled_back_even_when_all_tools_are_content() -> None:
    judgement = judge(evidence(found=OLD))
    assert judgement.verdict is Verdict.ROLLED_BACK
    assert subs(judgement) == (Verdict.INTACT, Verdict.INTACT, Verdict.ROLLED_BACK)
    assert (judgement.lost, judgement.findings.stale) == (3, 3)
    assert judgement.findings.rollback_ms == 130.0 - 80.0


def test_mixed_states_are_corrupted_and_the_kernels_complaints_go_along() -> None:
    judgement = judge(evidence(tool(Step.CLIENT_DMESG, "kernel/csum-failed"), found=MIXED))
    assert judgement.verdict is Verdict.CORRUPTED
    assert subs(judgement) == (Verdict.INTACT, Verdict.INTACT, Verdict.CORRUPTED)
    assert (judgement.lost, judgement.findings.rollback_ms) == (1, None)
    assert any("csum failed" in reason for reason in judgement.reasons)


def test_a_bad_copy_beside_a_good_one_is_worse_than_intact() -> None:
    judgement = judge(evidence(tool(Step.FS_CHECK, "btrfs/one-bad-copy")))
    assert judgement.verdict is Verdict.REPAIRED
    assert subs(judgement) == (Verdict.INTACT, Verdict.REPAIRED, Verdict.INTACT)


def test_a_repair_that_keeps_everything_is_repaired() -> None:
    judgement = judge(read(evidence(*REPAIR, found=EVERYTHING), EVERYTHING, after_repair=True))
    assert judgement.verdict is Verdict.REPAIRED
    assert "parent transid verify failed" in judgement.fsck
    assert "repaired" in judgement.fsck


def test_a_repair_that_loses_acknowledgements_is_corruption_not_a_rollback() -> None:
    lost = read(evidence(*REPAIR, found=EVERYTHING), OLD, after_repair=True)
    less_old = read(lost, readback(4, 5, 3))
    for before in (lost, read(lost, None), read(lost, MIXED), less_old):
        judgement = judge(before)
        assert judgement.verdict is Verdict.CORRUPTED
        assert judgement.data is Verdict.CORRUPTED
        assert "after a repair" in " ".join(judgement.reasons)
    as_old_as_before = judge(read(lost, OLD))
    assert as_old_as_before.verdict is Verdict.ROLLED_BACK


def test_a_filesystem_that_never_mounts_again_is_unrepairable_and_all_is_lost() -> None:
    judgement = judge(evidence(*WONT_MOUNT, found=None))
    assert judgement.verdict is Verdict.UNREPAIRABLE
    assert subs(judgement) == (Verdict.INTACT, Verdict.UNREPAIRABLE, None)
    assert (judgement.acknowledged, judgement.lost) == (6, 6)
    assert judgement.fsck.startswith("will not mount: wrong fs type")


def test_errors_left_after_the_repair_are_unrepairable() -> None:
    left = tool(Step.FS_CHECK_AFTER_REPAIR, "btrfs/wrong-link-count-look")
    judgement = judge(read(evidence(*REPAIR[:-1], left), EVERYTHING, after_repair=True))
    assert judgement.verdict is Verdict.UNREPAIRABLE


@pytest.mark.parametrize(
    ("found", "data", "lost"),
    [
        (EVERYTHING, Verdict.INTACT, 0),
        (OLD, Verdict.ROLLED_BACK, 3),
        (MIXED, Verdict.CORRUPTED, 1),
        (None, None, 6),
    ],
)
def test_data_read_before_a_hopeless_repair_are_scored_on_their_own(
    found: str | None, data: Verdict | None, lost: int
) -> None:
    left = tool(Step.FS_CHECK_AFTER_REPAIR, "btrfs/wrong-link-count-look")
    made = read(evidence(*REPAIR[:-1], left, found=found), OLD, after_repair=True)
    judgement = judge(made)
    assert judgement.verdict is Verdict.UNREPAIRABLE
    assert subs(judgement) == (Verdict.INTACT, Verdict.UNREPAIRABLE, data)
    assert judgement.lost == lost
    unread = judge(read(made, "{"))
    assert (unread.verdict, unread.filesystem) == (Verdict.UNREPAIRABLE, Verdict.UNREPAIRABLE)
    assert "at least" in unread.reasons[0]
    silent = replace(made, ledger=Ledger(events=made.ledger.events[:2]))
    assert judge(silent).verdict is Verdict.UNREPAIRABLE


def test_a_loss_that_no_repair_mends_counts_with_or_without_a_look_at_the_pool() -> None:
    made = without(evidence(*WONT_MOUNT, found=None), Step.POOL_IMPORT, Step.POOL_STATUS)
    judgement = judge(made)
    assert (judgement.verdict, judgement.lost) == (Verdict.UNREPAIRABLE, 6)
    assert subs(judgement) == (None, Verdict.UNREPAIRABLE, None)
    assert "at least" in judgement.reasons[0]


def test_a_repair_without_an_end_condemns_only_a_filesystem_that_will_not_mount() -> None:
    late = replace(REPAIR[1], exit_code=None)
    judgement = judge(evidence(*WONT_MOUNT[:2], late, WONT_MOUNT[3], found=None))
    assert (judgement.verdict, judgement.lost) == (Verdict.UNREPAIRABLE, 6)
    assert "the repair did not end" in judgement.fsck
    mounts = read(evidence(REPAIR[0], late, *REPAIR[2:]), EVERYTHING, after_repair=True)
    assert judge(mounts).verdict is Verdict.REPAIRED, "at least: it needed one"
    hung = replace(WONT_MOUNT[0], exit_code=None)
    assert judge(evidence(hung, WONT_MOUNT[1], late)).verdict is Verdict.REPAIRED


@pytest.mark.parametrize("exit_code", [None, 1, 32])
def test_a_check_of_a_mounted_filesystem_proves_nothing(exit_code: int | None) -> None:
    made = read(evidence(*REPAIR), EVERYTHING, after_repair=True)
    assert judge(made).verdict is Verdict.REPAIRED
    for step in (Step.FS_UMOUNT, Step.FS_UMOUNT_AFTER_REPAIR):
        # the check before the repair still counts where only the one after it does not
        known = Verdict.INCONCLUSIVE if step is Step.FS_UMOUNT else Verdict.REPAIRED
        for spoilt in (otherwise(made, step, exit_code=exit_code), without(made, step)):
            judgement = judge(spoilt)
            assert judgement.verdict is known
            assert "it was checked while still mounted" in " ".join(judgement.reasons)


def test_a_filesystem_that_does_not_mount_needs_no_unmounting() -> None:
    made = without(evidence(*WONT_MOUNT, found=None), Step.FS_UMOUNT)
    assert judge(made).verdict is Verdict.UNREPAIRABLE


def test_a_disk_that_fails_on_a_whole_pool_is_the_machinerys() -> None:
    failed = failed_disk()
    unread = EVERYTHING.replace('"blocks": [4]', '"blocks": ["errno:5"]')
    assert unread != EVERYTHING
    for kind in ("btrfs", "raw"):
        for found in (EVERYTHING, unread):
            judgement = judge(evidence(failed, filesystem=kind, found=found))
            assert judgement.verdict is Verdict.INCONCLUSIVE
            assert judgement.reasons[0] == "the checker's disk failed although the pool is whole"
            assert judgement.pool is Verdict.INTACT
        stale = judge(evidence(failed, filesystem=kind, found=MIXED))
        assert (stale.verdict, stale.lost) == (Verdict.CORRUPTED, 1), "read without an error"
    assert judge(evidence(failed, DATA_ERRORS, found=MIXED)).verdict is Verdict.CORRUPTED
    checksum = tool(Step.CHECK_DMESG, "kernel/csum-failed")
    assert judge(evidence(checksum, found=MIXED)).verdict is Verdict.CORRUPTED


def test_a_disk_that_fails_after_the_last_unmount_is_no_fault_if_the_check_vouched() -> None:
    later = failed_disk(after_unmount=True)
    assert judge(evidence(later)).verdict is Verdict.INTACT
    assert judge(evidence(later, found=MIXED)).verdict is Verdict.CORRUPTED
    unsure = judge(evidence(later, tool(Step.FS_CHECK, "btrfs/chunk-tree-wiped-look")))
    assert unsure.verdict is Verdict.INCONCLUSIVE


def test_an_import_that_a_fault_of_the_kernel_killed_is_an_outage() -> None:
    killed = tool(Step.POOL_IMPORT, "zpool/import-ok", exit_code=137)
    assert judge(evidence(killed)).verdict is Verdict.INCONCLUSIVE
    judgement = judge(evidence(killed, tool(Step.NAS_DMESG, "kernel/nas-oops")))
    assert (judgement.verdict, judgement.pool) == (Verdict.UNAVAILABLE, Verdict.UNAVAILABLE)
    assert any("general protection fault" in reason for reason in judgement.reasons)


def test_only_a_status_from_after_a_whole_scrub_vouches_for_the_pool() -> None:
    made = evidence()
    before = tuple(output for output in made.tools if output.step != Step.POOL_STATUS)
    early = replace(made, tools=(before[0], STATUS, *before[1:]))
    judgement = judge(early)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "status was never read after its scrub" in judgement.reasons[0]
    assert judge(replace(made, tools=(*early.tools, DATA_ERRORS))).verdict is Verdict.CORRUPTED
    healed = replace(made, tools=(before[0], DATA_ERRORS, *before[1:], STATUS))
    assert judge(healed).pool is Verdict.REPAIRED
    assert "pool: it had data errors, which are gone after the scrub" in judge(healed).reasons


def unfinished(state: str) -> ToolOutput:
    return replace(STATUS, stdout=STATUS.stdout.replace('"FINISHED"', f'"{state}"'))


@pytest.mark.parametrize(
    "output",
    [
        replace(SCRUB, stdout="", exit_code=1),
        replace(SCRUB, stderr="cannot scrub tank: pool I/O is currently suspended\n", exit_code=1),
        replace(SCRUB, stderr="cannot cancel scrubbing tank: there is no active scrub\n"),
        replace(SCRUB, stdout="scrub canceled\n"),
        *map(unfinished, ("CANCELED", "SCANNING", "ERRORSCRUBBING")),
    ],
)
def test_a_scrub_that_did_not_finish_leaves_the_pool_unscored(output: ToolOutput) -> None:
    judgement = judge(evidence(output))
    assert (judgement.verdict, judgement.pool) == (Verdict.INCONCLUSIVE, None)
    assert "not scrubbed to its end" in judgement.reasons[0]


def test_an_import_that_gives_transactions_up_is_reported_and_the_data_decides() -> None:
    tools = (
        tool(Step.POOL_IMPORT, "zpool/import-missing-log"),
        tool(Step.POOL_IMPORT_M, "zpool/import-ok"),
    )
    judgement = judge(evidence(*tools))
    assert judgement.verdict is Verdict.REPAIRED
    assert "needed -m" in judgement.pool_summary
    rolled = judge(evidence(*tools, found=OLD))
    assert (rolled.verdict, rolled.pool) == (Verdict.ROLLED_BACK, Verdict.REPAIRED)
    hopeless = tool(Step.POOL_IMPORT_M, "zpool/import-needs-rewind")
    rewound = tool(Step.POOL_IMPORT_REWIND, "zpool/import-rewound")
    judgement = judge(evidence(tools[0], hopeless, rewound, found=OLD))
    assert judgement.verdict is Verdict.ROLLED_BACK
    assert "needed -F" in judgement.pool_summary
    assert any("Discarded approximately 5 seconds" in reason for reason in judgement.reasons)


def test_an_import_that_succeeds_at_the_second_attempt_gave_nothing_up() -> None:
    refused = tool(Step.POOL_IMPORT, "zpool/import-no-such-pool")
    made = evidence()
    judgement = judge(replace(made, tools=(refused, *made.tools)))
    assert subs(judgement) == (Verdict.INTACT,) * 3
    assert any(
        "refused at first, and done at the second attempt" in said for said in judgement.reasons
    )


def test_a_pool_that_no_import_brings_back_is_lost() -> None:
    cases = ("needs-rewind", "needs-rewind", "hopeless")
    tools = [tool(step, f"zpool/import-{case}") for step, case in zip(IMPORTS, cases, strict=True)]
    lost = without(evidence(*tools, found=None), Step.POOL_STATUS, Step.FS_MOUNT, Step.FS_CHECK)
    judgement = judge(lost)
    assert judgement.verdict is Verdict.POOL_LOST
    assert subs(judgement) == (Verdict.POOL_LOST, None, None)
    assert (judgement.acknowledged, judgement.lost) == (6, 6)
    rewindable = judge(without(lost, Step.POOL_IMPORT_REWIND))
    assert rewindable.verdict is Verdict.ROLLED_BACK, "at least: only -F is left"
    assert judge(without(lost, *IMPORTS[1:])).verdict is Verdict.REPAIRED, "only -m and -F are left"
    assert judge(without(lost, *IMPORTS)).verdict is Verdict.INCONCLUSIVE


def test_data_that_zfs_itself_cannot_give_back_is_corruption() -> None:
    judgement = judge(evidence(DATA_ERRORS))
    assert judgement.verdict is Verdict.CORRUPTED
    assert subs(judgement) == (Verdict.CORRUPTED, Verdict.INTACT, Verdict.INTACT)
    assert judgement.pool_summary == "ONLINE, 2 data errors"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda e: read(e, None), "no read-back"),
        (lambda e: read(e, EVERYTHING[:-9]), "cannot be read"),
        (lambda e: read(e, EVERYTHING.replace("true}", "false}")), "complete"),
        (lambda e: read(e, EVERYTHING.replace(": 7,", ": 8,")), "another trial"),
        (lambda e: replace(e, ledger=Ledger(events=())), "never began"),
        (lambda e: replace(e, ledger=replace(e.ledger, garbled=1)), "garbled"),
        (lambda e: replace(e, ledger=Ledger(events=e.ledger.events[:2])), "nothing was ackn"),
        (lambda e: replace(e, spec={"cell": "floppy"}), "floppy"),
        (lambda e: replace(e, spec={}), "None"),
    ],
)
@pytest.mark.parametrize("found", [EVERYTHING, MIXED])
def test_evidence_that_does_not_tell_is_inconclusive_and_says_why(
    spoil: Callable[[Evidence], Evidence], why: str, found: str
) -> None:
    made = evidence(found=found)
    judgement = judge(spoil(made))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert why in " ".join(judgement.reasons)


def test_known_scores_stay_when_the_trial_is_inconclusive() -> None:
    judgement = judge(without(evidence(found=MIXED), Step.FS_CHECK))
    assert subs(judgement) == (Verdict.INTACT, None, Verdict.CORRUPTED)
    assert judgement.lost == 1


def test_a_repair_whose_result_is_unknown_was_needed_all_the_same() -> None:
    for missing in (Step.FS_REPAIR, Step.FS_MOUNT_AFTER_REPAIR, Step.FS_CHECK_AFTER_REPAIR):
        made = without(read(evidence(*REPAIR), EVERYTHING, after_repair=True), missing)
        assert judge(made).verdict is Verdict.REPAIRED
        assert "at least that" in judge(made).reasons[0]
    assert judge(evidence(*REPAIR)).verdict is Verdict.REPAIRED

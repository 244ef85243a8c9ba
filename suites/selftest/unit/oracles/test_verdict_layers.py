"""Each layer is judged on its own: what one cannot say hides nothing that another one lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    evidence,
    tool,
    umount,
    without,
)
from torture.facts.evidence.folder import (
    READBACK,
    READBACK_AFTER_REPAIR,
    Evidence,
    Step,
    ToolOutput,
)
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

PANIC = "[   12.1] PANIC at zio.c:341:zio_buf_alloc()\n"
REPLAY = "[   12.1] ZFS replay transaction error 52, dataset tank/vm, seq 0x7, txtype 9\n"


def beside(load: str, document: str, text: str | None, found: str) -> Evidence:
    """A trial with another load beside the ledger, and what was read back of that."""
    made = evidence(found=found)
    spec = dict(made.spec) | {"cell": f"iscsi-standard-noslog-btrfs-{load}-nasonly"}
    others = {} if text is None else {document: text}
    return replace(made, spec=spec, readbacks=dict(made.readbacks) | others)


def said(step: Step, stdout: str) -> ToolOutput:
    log = tool(Step.CHECK_DMESG, "kernel/log-replayed")
    return replace(log, step=step, vm="nas", stdout=log.stdout + stdout)


@pytest.mark.parametrize(
    ("load", "text"),
    [("churn", None), ("churn", "{"), ("gobonniego", None), ("gobonniego", "read ./bonnie.0")],
)
def test_a_load_that_cannot_be_judged_hides_no_loss_of_the_ledger(
    load: str, text: str | None
) -> None:
    document = f"readback-{load}.json"
    unknown = judge(beside(load, document, text, EVERYTHING))
    assert unknown.verdict is Verdict.INCONCLUSIVE
    lost = judge(beside(load, document, text, MIXED))
    assert (lost.verdict, lost.data, lost.lost) == (Verdict.CORRUPTED, Verdict.CORRUPTED, 1)
    assert "at least that: the evidence is incomplete" in lost.reasons


@pytest.mark.parametrize("why", ["runtime error: index out of range", "SIGBUS signal"])
def test_a_program_that_ended_in_unknown_words_hides_no_loss_of_the_ledger(why: str) -> None:
    ended = tool(Step.CLIENT_LOAD, "mount/mounted", exit_code=2, stderr=f"panic: {why}\n")
    made = beside("gobonniego", "readback-gobonniego.json", "complete\n", MIXED)
    lost = judge(replace(made, tools=(*made.tools, ended)))
    assert (lost.verdict, lost.lost) == (Verdict.CORRUPTED, 1)


def test_garbled_tools_hide_no_loss_that_was_read_without_an_error() -> None:
    why = "1 lines of tools are garbled"
    unknown = judge(replace(evidence(), garbled_tools=1))
    assert (unknown.verdict, unknown.reasons[0]) == (Verdict.INCONCLUSIVE, why)
    lost = judge(replace(evidence(found=MIXED), garbled_tools=1))
    assert (lost.verdict, lost.lost) == (Verdict.CORRUPTED, 1)
    assert why in lost.reasons


def test_a_journal_that_is_dirty_after_a_mount_is_no_clean_filesystem() -> None:
    """It shut itself down in between: the repair and what it left decide."""
    dirty = tool(Step.FS_CHECK, "e2fsck/dirty-journal-look")
    assert judge(evidence(dirty, filesystem="ext4")).verdict is Verdict.REPAIRED, "at least"
    mended = (
        dirty,
        tool(Step.FS_REPAIR, "e2fsck/clean"),
        tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/mounted"),
        umount(Step.FS_UMOUNT_AFTER_REPAIR),
    )

    def after(case: str, found: str) -> Verdict:
        check = tool(Step.FS_CHECK_AFTER_REPAIR, f"e2fsck/{case}")
        made = evidence(*mended, check, filesystem="ext4")
        readbacks = {READBACK: EVERYTHING, READBACK_AFTER_REPAIR: found}
        return judge(replace(made, readbacks=readbacks)).verdict

    assert after("clean", EVERYTHING) is Verdict.REPAIRED
    assert after("clean", MIXED) is Verdict.CORRUPTED
    assert after("dirty-journal-look", EVERYTHING) is Verdict.UNREPAIRABLE


@pytest.mark.parametrize(
    ("line", "verdict"), [(PANIC, Verdict.UNAVAILABLE), (REPLAY, Verdict.CORRUPTED)]
)
@pytest.mark.parametrize("missing", [Step.POOL_SCRUB, Step.POOL_STATUS, Step.POOL_IMPORT])
def test_a_kernel_that_gave_up_is_no_less_when_the_pool_cannot_be_scored(
    line: str, verdict: Verdict, missing: Step
) -> None:
    assert judge(without(evidence(), missing)).verdict is Verdict.INCONCLUSIVE
    judgement = judge(without(evidence(said(Step.NAS_DMESG, line)), missing))
    assert (judgement.verdict, judgement.pool) == (verdict, verdict)
    assert any(line.split("] ")[1].strip() in reason for reason in judgement.reasons)


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        ("unsupported version or feature", Verdict.POOL_LOST),
        ("Invalid argument", Verdict.POOL_LOST),
        ("Numerical result out of range", Verdict.POOL_LOST),
        ("words of a version to come", Verdict.POOL_LOST),
        ("no such pool available", Verdict.INCONCLUSIVE),
        ("a pool with that name already exists", Verdict.INCONCLUSIVE),
        ("permission denied", Verdict.INCONCLUSIVE),
    ],
)
def test_a_refusal_is_the_pools_unless_it_is_known_to_be_ours(
    reason: str, verdict: Verdict
) -> None:
    refusal = tool(Step.POOL_IMPORT, "zpool/import-hopeless")
    refusals = tuple(
        replace(refusal, step=step, stdout="", stderr=f"cannot import 'tank': {reason}\n")
        for step in (Step.POOL_IMPORT, Step.POOL_IMPORT_M, Step.POOL_IMPORT_REWIND)
    )
    made = without(evidence(*refusals, found=None), Step.POOL_STATUS, Step.FS_MOUNT, Step.FS_CHECK)
    assert judge(made).verdict is verdict

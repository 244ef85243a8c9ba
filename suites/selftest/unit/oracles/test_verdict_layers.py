"""Each layer is judged on its own: what one cannot say hides nothing that another one lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    REPAIR,
    SCRUB,
    evidence,
    read,
    tool,
    umount,
    without,
)
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    READBACK,
    READBACK_AFTER_REPAIR,
    Evidence,
    Step,
    ToolOutput,
)
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.pool_verdict import judge_pool
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


# A pool that is short of a disk: no damage when the trial took the disk away, else it is.

_SHORT = "zpool/status-short-of-a-leg"


def _evidence(cut: CutDocument, **status_text: str) -> Evidence:
    status = tool(Step.POOL_STATUS, _SHORT)
    for old, new in status_text.items():
        assert old in status.stdout
        status = replace(status, stdout=status.stdout.replace(old, new))
    made = evidence()
    kept = tuple(output for output in made.tools if output.step != Step.POOL_STATUS)
    assert SCRUB in kept
    return replace(made, tools=(*kept, status), cut=cut)


def _gone(*policies: str) -> CutDocument:
    disks = {f"slog{at}": {"policy": policy} for at, policy in enumerate(policies)}
    return CutDocument.from_json({"disks": disks})


def test_a_removed_leg_is_no_damage_and_is_reported() -> None:
    finding = judge_pool(_evidence(_gone("gone", "all")))
    assert (finding.verdict, finding.reasons) == (Verdict.INTACT, ())
    assert "DEGRADED" in finding.summary


@pytest.mark.parametrize(
    "cut", [CutDocument(), _gone("all", "torn")], ids=["old-record", "none-gone"]
)
def test_a_missing_leg_that_was_not_removed_is_damage(cut: CutDocument) -> None:
    assert judge_pool(_evidence(cut)).verdict is Verdict.REPAIRED


@pytest.mark.parametrize("state", ["FAULTED", "SUSPENDED"])
def test_a_device_in_another_state_is_damage_though_one_was_taken_away(state: str) -> None:
    finding = judge_pool(_evidence(_gone("gone", "all"), CANT_OPEN=state))
    assert finding.verdict is Verdict.REPAIRED


# A repair is judged by what it left, in whatever words it ended; but it has to have worked.

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

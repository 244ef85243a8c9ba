"""Each layer is judged on its own: what one cannot say hides nothing that another one lost.

The order of the verdicts, from best to worst, with `inconclusive` beside it.

The conclusion of an oracle from a moment; a torn sector of a disk is a loss that it names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    REPAIR,
    begun,
    evidence,
    ledger,
    nas_log,
    read,
    readback,
    refused,
    tool,
    umount,
    without,
)
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    IMPORTS,
    READBACK,
    READBACK_AFTER_REPAIR,
    Completed,
    Evidence,
    Step,
)
from torture.facts.evidence.ledger import Cut, Done, Event, Failed, Ledger, OperationKind
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict, worst
from torture.oracles.verdict.judgement import UNJUDGED, Findings, conclude, together, with_words
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.records.scoring.judge import judge

PANIC = "PANIC at zio.c:341:zio_buf_alloc()"
REPLAY = "ZFS replay transaction error 52, dataset tank/vm, seq 0x7, txtype 9"


def beside(load: str, document: str, text: str | None, found: str) -> Evidence:
    """A trial with another load beside the ledger, and what was read back of that."""
    made = evidence(found=found)
    spec = dict(made.spec) | {"cell": f"iscsi-standard-noslog-btrfs-{load}-nasonly"}
    others = {} if text is None else {document: text}
    return replace(made, spec=spec, readbacks=dict(made.readbacks) | others)


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
    judgement = judge(without(evidence(nas_log(line)), missing))
    assert (judgement.verdict, judgement.pool) == (verdict, verdict)
    assert any(line in reason for reason in judgement.reasons)


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
    made = evidence(*refused(*IMPORTS, why=reason), found=None)
    made = without(made, Step.POOL_STATUS, Step.FS_MOUNT, Step.FS_CHECK)
    assert judge(made).verdict is verdict


# A pool that is short of a disk: no damage when the trial took the disk away, else it is.


def _short(cut: CutDocument, *, state: str = "CANT_OPEN") -> Evidence:
    status = tool(Step.POOL_STATUS, "zpool/status-short-of-a-leg")
    assert "CANT_OPEN" in status.stdout
    return evidence(replace(status, stdout=status.stdout.replace("CANT_OPEN", state)), cut=cut)


def _gone(*policies: str) -> CutDocument:
    disks = {f"slog{at}": {"policy": policy} for at, policy in enumerate(policies)}
    return CutDocument.from_json({"disks": disks})


def test_a_removed_leg_is_no_damage_and_is_reported() -> None:
    finding = judge_pool(_short(_gone("gone", "all")))
    assert (finding.verdict, finding.reasons) == (Verdict.INTACT, ())
    assert "DEGRADED" in finding.summary


@pytest.mark.parametrize(
    "cut", [CutDocument(), _gone("all", "torn")], ids=["old-record", "none-gone"]
)
def test_a_missing_leg_that_was_not_removed_is_damage(cut: CutDocument) -> None:
    assert judge_pool(_short(cut)).verdict is Verdict.REPAIRED


@pytest.mark.parametrize("state", ["FAULTED", "SUSPENDED"])
def test_a_device_in_another_state_is_damage_though_one_was_taken_away(state: str) -> None:
    finding = judge_pool(_short(_gone("gone", "all"), state=state))
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


ORDER = (
    Verdict.INTACT,
    Verdict.OFFLINE,
    Verdict.REPAIRED,
    Verdict.ROLLED_BACK,
    Verdict.CORRUPTED,
    Verdict.UNREPAIRABLE,
    Verdict.UNAVAILABLE,
    Verdict.POOL_LOST,
    Verdict.SPLIT_BRAIN,
)
"""As in the design."""


def test_every_verdict_but_one_has_a_place() -> None:
    assert [verdict.badness for verdict in ORDER] == list(range(len(ORDER)))
    assert set(Verdict) - set(ORDER) == {Verdict.INCONCLUSIVE}


def test_the_words_are_those_of_the_records() -> None:
    words = "intact offline repaired rolled-back corrupted unrepairable unavailable pool-lost"
    assert [str(verdict) for verdict in ORDER] == [*words.split(), "split-brain"]


def test_loss_begins_where_acknowledged_data_is_gone_and_corruption_where_the_rest_is_wrong() -> (
    None
):
    """Inconclusive is neither."""
    assert {verdict for verdict in Verdict if verdict.is_loss} == set(ORDER[3:])
    assert {verdict for verdict in Verdict if verdict.is_corruption} == set(ORDER[4:])


@settings(deadline=None)
@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_the_worst_is_the_one_furthest_down(verdicts: list[Verdict]) -> None:
    assert worst(verdicts) is [verdict for verdict in ORDER if verdict in verdicts][-1]


def test_the_worst_of_nothing_and_of_inconclusive_is_not_made_up() -> None:
    with pytest.raises(ValueError, match="empty"):
        worst([])
    with pytest.raises(ValueError, match="not in tuple"):
        worst([Verdict.INTACT, Verdict.INCONCLUSIVE])


BEGUN = begun(100.0, 1, OperationKind.TRANSACTION, blocks=())
LEDGER = Ledger(events=(BEGUN, Done(t_ms=300.0, seq=1)))


@pytest.mark.parametrize(
    ("moment", "verdict", "back_ms"),
    [(2, Verdict.INTACT, None), (1, Verdict.ROLLED_BACK, 200.0), (0, Verdict.ROLLED_BACK, 400.0)],
)
def test_a_moment_before_the_last_that_may_not_be_gone_is_a_rollback(
    moment: int, verdict: Verdict, back_ms: float | None
) -> None:
    found = conclude(
        LEDGER, moment, UNJUDGED, last=1, cut_ms=500.0, otherwise="", noun="transaction"
    )
    assert (found.verdict, found.rollback_ms) == (verdict, back_ms)


def test_without_a_moment_it_is_corrupted_and_said_why_unless_that_is_said_already() -> None:
    said, silent = (
        conclude(LEDGER, None, UNJUDGED, last=1, cut_ms=None, otherwise=why, noun="transaction")
        for why in ("mixed", "")
    )
    assert (said.verdict, said.reasons) == (Verdict.CORRUPTED, ("mixed",))
    assert (silent.verdict, silent.reasons) == (Verdict.CORRUPTED, ())


def test_of_many_reasons_the_first_are_shown_and_of_failures_all() -> None:
    reasons = tuple(f"reason {number}" for number in range(20))
    failures = tuple(Failed(t_ms=1.0, seq=seq, call="fsync", errno=5) for seq in (3, 4))
    found = structs.replace(UNJUDGED, verdict=Verdict.CORRUPTED, reasons=reasons)
    said = with_words(found, "above all", Ledger(events=failures), noun="operation")
    assert said == structs.replace(
        found,
        reasons=(
            "above all",
            *reasons[:11],
            "and 9 more",
            "operation 3 failed in the client: fsync, errno 5",
            "operation 4 failed in the client: fsync, errno 5",
        ),
    )


def test_several_loads_went_back_as_far_as_the_one_that_went_back_farthest() -> None:
    near, far = (
        Findings(verdict=Verdict.ROLLED_BACK, acknowledged=3, lost=1, rollback_ms=back_ms)
        for back_ms in (20.0, 300.0)
    )
    for pair in ((near, far), (far, near)):
        found = together(pair)
        assert (found.verdict, found.rollback_ms) == (Verdict.ROLLED_BACK, 300.0)
        assert (found.acknowledged, found.lost) == (6, 2)
    torn = structs.replace(UNJUDGED, verdict=Verdict.CORRUPTED, torn=1)
    assert together((far, torn)).rollback_ms is None, "what is left is no past"


@pytest.mark.parametrize("program", ["zdb", "/usr/lib/torture/zdb"])
def test_a_tool_is_named_wherever_it_lies(program: str) -> None:
    ran = Completed(
        vm="nas", argv=(program, "-b"), exit_code=0, stdout="", stderr="", duration_ms=1
    )
    assert ran.tool == "zdb"


# A disk's sector that is half new, by a write under way: a loss whose reasons name the finding.

_DISK, _FILES = "iscsi-always-noslog-ext4-bothdie", "nfs4-always-noslog-files-bothdie"
_SEQ = 9
_BEGUN = begun(65, _SEQ, OperationKind.OVERWRITE)
_TITLE = "A zvol does not keep a sector whole"


def _seen(first: Any, *others: Any, cell: str = _DISK, events: tuple[Event, ...]) -> Evidence:
    """Three files; the first one's content, and `events` before the cut."""
    *before, cut = ledger().events
    assert isinstance(cut, Cut)
    return evidence(
        filesystem="ext4" if cell is _DISK else "raw",
        found=readback(first, *(others or (5, 6)), finds_halves=True),
        ledger=Ledger(events=(*before, *events, cut)),
        spec={"cell": cell, "seed": 1},
    )


def _half(sector: str) -> list[int | str]:
    return [_SEQ, _SEQ, sector, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("sector", [f"half:{_SEQ}:4", f"half:4:{_SEQ}"])
def test_half_a_sector_of_a_write_under_way_is_a_loss_that_names_the_finding(sector: str) -> None:
    judged = judge(_seen(_half(sector), events=(_BEGUN,)))
    assert judged.verdict is Verdict.CORRUPTED
    assert judged.reasons[-1].endswith(f"see docs/findings.md, '{_TITLE}'")
    assert f"## {_TITLE}\n" in (CHECKOUT / "docs" / "findings.md").read_text()


@pytest.mark.parametrize(
    ("first", "others", "events"),
    [
        (_half(f"half:{_SEQ}:4"), (5, 3), (_BEGUN,)),
        (_half(f"half:{_SEQ}:4"), (), (_BEGUN, Done(t_ms=66, seq=_SEQ))),
        (_half(f"half:{_SEQ}:1"), (), (_BEGUN,)),
        ([_SEQ, "garbage", *[4] * 6], (), (_BEGUN,)),
        ([f"half:{_SEQ}:4", f"half:{_SEQ}:4", *[4] * 6], (), (_BEGUN,)),
        (1, (), (_BEGUN,)),
    ],
    ids=["and a loss beside", "acknowledged", "an older one", "another's", "two sectors", "stale"],
)
def test_any_other_loss_does_not(
    first: Any, others: tuple[int, ...], events: tuple[Event, ...]
) -> None:
    judged = judge(_seen(first, *others, events=events))
    assert judged.verdict is Verdict.CORRUPTED
    assert not any("findings.md" in reason for reason in judged.reasons)


def test_files_promise_no_whole_sector() -> None:
    assert judge(_seen(_half(f"half:{_SEQ}:4"), cell=_FILES, events=(_BEGUN,))).verdict is (
        Verdict.INTACT
    )

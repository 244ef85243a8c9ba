"""Storage that did not come back, known losses all the same, pools that break every guarantee."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    OLD,
    begun,
    evidence,
    failed_disk,
    ledger,
    nas_log,
    otherwise,
    recording,
    refused,
    tool,
    without,
)
from suites.selftest.unit.made_records import changed, trial_record
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument, DiskAtCut
from torture.facts.evidence.documents import document_or_none
from torture.facts.evidence.folder import IMPORTS, Evidence, Outage, Step
from torture.facts.evidence.ledger import Done, Failed, Ledger, OperationKind
from torture.oracles.verdict.guarantee import COMMIT_SLACK_MS, Guarantee, Verdict
from torture.records.record.trials import TrialRecord
from torture.records.scoring.judge import judge

HUNG = Outage(
    stage="bring NAS back", what="the import hung for 300 s", machine="nas-2", of_nas=True
)
STUCK = Outage(stage="live on", what="the client did not go on", machine="client", of_nas=False)
PANIC = (
    "VERIFY3(0 == dmu_object_free(mos, obj, tx)) failed (0 == 52)",
    "PANIC at dsl_dataset.c:1234:dsl_dataset_sync_done()",
)
"""As OpenZFS `include/os/linux/spl/sys/debug.h` prints it."""
_GONE, _UNREPLAYED = Verdict.UNAVAILABLE, Verdict.CORRUPTED


def _late(step: Step) -> Callable[[Evidence], Evidence]:
    return lambda made: otherwise(made, step, exit_code=None)


def _cut_off(step: Step, case: str) -> Callable[[Evidence], Evidence]:
    start = recording(case).stdout[:40]
    return lambda made: otherwise(made, step, stdout=start, stderr="")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda e: without(e, Step.POOL_IMPORT), "pool-import was never tried"),
        (lambda e: without(e, Step.POOL_STATUS), "status was never read"),
        (lambda e: without(e, Step.POOL_SCRUB), "pool-scrub was never run"),
        (lambda e: without(e, Step.FS_MOUNT), "fs-mount was never run"),
        (lambda e: without(e, Step.FS_CHECK), "fs-check was never run"),
        (_late(Step.POOL_IMPORT), "deadline"),
        (_late(Step.POOL_SCRUB), "deadline"),
        (_late(Step.FS_MOUNT), "deadline"),
        (_late(Step.FS_CHECK), "deadline"),
        (_cut_off(Step.POOL_STATUS, "zpool/status-scrubbed"), "no status of one pool"),
        (_cut_off(Step.FS_CHECK, "btrfs/clean"), "closing line"),
    ],
)
@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (EVERYTHING, Verdict.INCONCLUSIVE),
        (OLD, Verdict.ROLLED_BACK),
        (MIXED, Verdict.CORRUPTED),
    ],
)
def test_a_known_loss_is_a_lower_bound(
    spoil: Callable[[Evidence], Evidence], why: str, found: str, verdict: Verdict
) -> None:
    """Where the data are read, an unchecked pool or filesystem cannot make them better."""
    judgement = judge(spoil(evidence(found=found)))
    assert judgement.verdict is verdict
    assert why in " ".join(judgement.reasons)
    assert ("at least" in judgement.reasons[0]) is verdict.is_loss


def test_damage_by_a_failed_disk_of_the_checker_is_no_lower_bound() -> None:
    failed = failed_disk()
    unread = EVERYTHING.replace('"blocks": [4]', '"blocks": ["errno:5"]')
    unscored = without(evidence(failed, found=unread), Step.POOL_SCRUB)
    assert judge(unscored).verdict is Verdict.INCONCLUSIVE
    stale = without(evidence(failed, found=MIXED), Step.POOL_SCRUB)
    assert judge(stale).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize("outage", [HUNG, STUCK])
def test_storage_that_does_not_come_back_is_unavailable_with_anything_else_unknown(
    outage: Outage,
) -> None:
    nothing = replace(evidence(), tools=(), readbacks={}, outage=outage)
    judgement = judge(nothing)
    assert judgement.verdict is Verdict.UNAVAILABLE
    assert judgement.pool is (Verdict.UNAVAILABLE if outage.of_nas else None)
    assert (judgement.acknowledged, judgement.lost) == (6, 6)
    assert outage.what in judgement.reasons[0]


def test_data_read_before_an_outage_is_counted_as_it_was() -> None:
    hung = structs.replace(HUNG, stage="scrub", what="pool-scrub: zpool hung for 300 s")
    judgement = judge(replace(without(evidence(), Step.POOL_SCRUB), outage=hung))
    assert (judgement.verdict, judgement.lost) == (Verdict.UNAVAILABLE, 0)
    assert judgement.data is Verdict.INTACT


def test_an_outage_comes_back_and_one_that_is_garbled_says_nothing() -> None:
    assert Outage.from_json(json.loads(json.dumps(HUNG.as_json()))) == HUNG
    assert document_or_none(Outage, {}) is None
    assert document_or_none(Outage, {"what": 7, "kernel": 3}) is None


def test_a_panic_of_zfs_is_reported_although_all_data_is_there() -> None:
    panicked = judge(evidence(nas_log(*PANIC)))
    assert (panicked.verdict, panicked.pool) == (Verdict.UNAVAILABLE, Verdict.UNAVAILABLE)
    assert any("dsl_dataset_sync_done" in reason for reason in panicked.reasons)


def test_a_kernel_log_that_only_loads_its_modules_is_no_finding() -> None:
    assert judge(evidence(nas_log("ZFS: Loaded module v2.3.9"))).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("PANIC: zfs: rt=ms_allocatable: removing nonexistent segment from range tree", _GONE),
        ("Pool 'tank' has encountered an uncorrectable I/O failure and has been suspended.", _GONE),
        ("ZFS replay transaction error 5, dataset tank/vm, seq 0x7, txtype 9", _UNREPLAYED),
        ("ZFS read log block error 52, dataset tank/vm, seq 0x2a", _UNREPLAYED),
        ("zil_parse: lr_t overrun", _UNREPLAYED),
        ("zil_parse: lr_t has an invalid reclen", _UNREPLAYED),
        ("can't open objset for 54, error 5", _UNREPLAYED),
        ("can't open objset 54, error 5", _UNREPLAYED),
    ],
)
def test_a_zfs_that_gives_up_or_does_not_replay_is_reported_although_all_data_is_there(
    line: str, verdict: Verdict
) -> None:
    """As OpenZFS 2.3.9 `module/zfs/zil.c` prints the latter."""
    said = judge(evidence(nas_log(f"WARNING: {line}")))
    assert said.pool is verdict
    assert f"nas: {line}" in said.reasons


def test_a_nas_that_came_back_twice_is_recorded_both_times() -> None:
    first = nas_log("WARNING: ZFS replay transaction error 5, dataset tank/vm, seq 0x7")
    twice = evidence(first, nas_log("ZFS: Loaded module v2.3.9"))
    assert judge(twice).pool is Verdict.CORRUPTED


def test_an_import_that_aborts_or_finds_nothing_any_more_leaves_a_lost_pool() -> None:
    aborted = replace(
        *refused(Step.POOL_IMPORT_M), exit_code=134, stderr="internal error: Invalid exchange\n"
    )
    gone = "no such pool available"
    tried = (*refused(IMPORTS[0]), aborted, *refused(IMPORTS[2], why=gone))
    judgement = judge(replace(evidence(), tools=tried, readbacks={}))
    assert judgement.verdict is Verdict.POOL_LOST
    assert "internal error" in " ".join(judgement.reasons)
    nothing = judge(replace(evidence(), tools=refused(*IMPORTS, why=gone), readbacks={}))
    assert nothing.verdict is Verdict.INCONCLUSIVE, "its disks were not there"


@pytest.mark.parametrize(
    ("attempt", "verdict"), [(1, Verdict.REPAIRED), (2, Verdict.ROLLED_BACK)], ids=["-m", "-F"]
)
def test_a_pool_that_had_to_give_up_transactions_is_rolled_back(
    attempt: int, verdict: Verdict
) -> None:
    """One without its log device is repaired."""
    done = replace(*refused(IMPORTS[attempt]), exit_code=0, stderr="")
    others = without(evidence(), Step.POOL_IMPORT)
    tools = (*refused(*IMPORTS[:attempt]), done, *others.tools)
    assert judge(replace(others, tools=tools)).pool is verdict


def _record(verdict: Verdict, *, pool: Verdict = Verdict.INTACT, **more: object) -> TrialRecord:
    record = trial_record(
        trial="t", cell="c", axes={}, seed=1, verdict=verdict, guarantee="", verdicts={"pool": pool}
    )
    return changed(record, **more)


@pytest.mark.parametrize("pool", [Verdict.ROLLED_BACK, Verdict.CORRUPTED, Verdict.UNAVAILABLE])
def test_a_pool_that_is_not_whole_breaks_every_guarantee_but_one(pool: Verdict) -> None:
    record = _record(Verdict.UNAVAILABLE, pool=pool)
    broken = {guarantee for guarantee in Guarantee if record.breaks(guarantee)}
    assert broken == set(Guarantee) - {Guarantee.MAY_LOSE_POOL}


def test_a_cell_that_loses_may_have_a_vm_stuck_on_a_whole_pool() -> None:
    record = _record(Verdict.UNAVAILABLE)
    assert not record.breaks(Guarantee.LOSES)
    assert record.breaks(Guarantee.ROLLS_BACK)


def test_a_pool_without_its_log_device_is_allowed_where_that_died() -> None:
    record = _record(Verdict.ROLLED_BACK, pool=Verdict.REPAIRED)
    assert not record.breaks(Guarantee.ROLLS_BACK)


def test_a_rollback_goes_back_as_far_as_was_not_committed_and_no_farther() -> None:
    cut = CutDocument(audit=AuditDocument(uncommitted_ms=3_000))
    for rollback_ms, breaks in ((3_000.0, False), (3_000.1 + COMMIT_SLACK_MS, True)):
        record = _record(Verdict.ROLLED_BACK, cut=cut, rollback_ms=rollback_ms)
        assert record.breaks(Guarantee.ROLLS_BACK) is breaks
    earlier = structs.replace(cut, confirmed=Confirmation(marks=3))
    of_earlier = _record(Verdict.ROLLED_BACK, cut=earlier, rollback_ms=14_000.0)
    assert not of_earlier.breaks(Guarantee.ROLLS_BACK), "the audit was of the drawn cut"
    old = _record(Verdict.ROLLED_BACK, rollback_ms=14_000.0)
    assert not old.breaks(Guarantee.ROLLS_BACK), "a record that does not say what was committed"


def _cut(
    *, aim: str = "anywhere", hit: bool = True, lately: int = 0, **at_risk: int
) -> CutDocument:
    return CutDocument(
        plan={"aim": aim},
        hit=hit,
        audit=AuditDocument(under_way=at_risk.get("under_way", 0), acknowledged_lately=lately),
        disks={
            "data0": DiskAtCut(
                unflushed=at_risk.get("unflushed", 0), in_flight=at_risk.get("in_flight", 0)
            )
        },
    )


def test_a_cut_that_could_take_nothing_is_empty_and_in_no_rate() -> None:
    assert _cut().is_empty
    assert judge(replace(evidence(), cut=_cut())).verdict is Verdict.INCONCLUSIVE
    lost = judge(replace(evidence(found=MIXED), cut=_cut()))
    assert lost.verdict is Verdict.CORRUPTED, "what it took all the same counts"


@pytest.mark.parametrize(
    "cut",
    [
        _cut(unflushed=1),
        _cut(in_flight=1),
        _cut(under_way=1, lately=1),
        _cut(under_way=1, unflushed=1),
        _cut(lately=1),
        _cut(aim="zil-completed"),
        CutDocument(plan={"aim": "anywhere"}, hit=True),
    ],
)
def test_a_cut_that_could_have_taken_something_counts(cut: CutDocument) -> None:
    """So does one without that information, as all cuts of older versions."""
    assert not cut.is_empty
    assert judge(replace(evidence(), cut=cut)).verdict is Verdict.INTACT


def test_an_aim_that_was_missed_is_none() -> None:
    assert _cut(aim="zil-completed", hit=False).is_empty


def test_of_two_cuts_one_that_could_take_something_will_do() -> None:
    again = evidence(tool(Step.POOL_IMPORT_AGAIN, "zpool/import-ok"))
    quiet, other = _cut(), _cut(unflushed=1)
    for first, second in ((quiet, other), (other, quiet)):
        cut = structs.replace(first, second=second)
        assert judge(replace(again, cut=cut)).verdict is Verdict.INTACT
    both_quiet = replace(again, cut=structs.replace(quiet, second=quiet))
    assert judge(both_quiet).verdict is Verdict.INCONCLUSIVE


def test_a_client_of_which_a_writer_failed_for_good_is_not_intact() -> None:
    events = ledger().events
    failed = (
        begun(200.0, 9, OperationKind.OVERWRITE),
        Failed(t_ms=210.0, seq=9, errno=5, call="fsync"),
    )
    stranded = judge(evidence(ledger=Ledger(events=events + failed)))
    assert (stranded.verdict, stranded.lost) == (Verdict.OFFLINE, 0)
    assert "errno 5 in fsync" in " ".join(stranded.reasons)
    other = begun(300.0, 10, OperationKind.SCRIBBLE, writer=1, file=1)
    went_on = (*failed, other, Done(t_ms=310.0, seq=10))
    alive = judge(evidence(ledger=Ledger(events=events + went_on)))
    assert alive.verdict is Verdict.REPAIRED, "that another one went on excuses nothing"
    assert "1 of 2 writers failed for good: errno 5 in fsync" in alive.reasons
    before = (*events[:-1], *failed, events[-1])
    assert judge(evidence(ledger=Ledger(events=before))).verdict is Verdict.INTACT
    full = evidence(ledger=Ledger(events=before))
    full = replace(full, spec={"cell": "iscsi-standard-noslog-btrfs-poolfull-bothdie", "seed": 1})
    assert judge(full).verdict is Verdict.OFFLINE, "its disk was dead before the cut"


def test_a_bad_copy_that_the_kernel_tells_of_is_no_intact_filesystem() -> None:
    """A read-write mount mends it as it reads: the checker comes too late to see it."""
    log = tool(Step.CHECK_DMESG, "kernel/log-replayed")
    assert judge(evidence(log)).filesystem is Verdict.INTACT
    for line in (
        "BTRFS warning (device vdb): checksum verify failed on logical 30441472 mirror 1 wanted",
        "BTRFS error (device vdb): parent transid verify failed on logical 5 mirror 1 wanted 9 found 7",
        "BTRFS info (device vdb): read error corrected: ino 0 off 30441472 (dev /dev/vdb sector 76224)",
    ):
        longer = replace(log, stdout=f"{log.stdout}[   21.000000] {line}\n")
        judgement = judge(evidence(longer))
        assert judgement.filesystem is Verdict.REPAIRED
        assert any(line in reason for reason in judgement.reasons)

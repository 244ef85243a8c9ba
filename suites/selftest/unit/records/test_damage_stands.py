"""Known damage stands, whatever is unreadable, killed, late or missing beside it.

Each kind of damage is planted into good evidence. Then every other piece of evidence is spoilt in turn,
and all of them at once. A damage is shown by the pieces that were planted, and by those on which they
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from types import SimpleNamespace
from typing import cast

import pytest

from suites.selftest.unit.good_evidence import (
    DATA_ERRORS,
    EVERYTHING,
    OLD,
    REPAIR,
    SCRUB,
    STATUS,
    WONT_MOUNT,
    begun,
    evidence,
    failed_disk,
    nas_log,
    read,
    refused,
    tool,
    without,
)
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.facts.evidence.folder import (
    ADMINISTRATION,
    IMPORTS,
    LEDGER,
    OUTAGE,
    PROOF,
    Evidence,
    Outage,
    Step,
    ToolOutput,
    part_kinds,
)
from torture.facts.evidence.ledger import Failed, OperationKind
from torture.facts.evidence.manifest import ManifestFinding
from torture.oracles.verdict.guarantee import Terms, UnreadableError, Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.record.trials import TrialRecord
from torture.records.scoring.checkers import check_administration
from torture.records.scoring.judge import judge

DMESG = tool(Step.CHECK_DMESG, "kernel/log-replayed")
CLIENT_LOGS = (Step.CLIENT_DMESG, Step.CLIENT_UMOUNT)
GOOD = evidence(
    tool(Step.FS_FIRST_CHECK, "btrfs/clean"),
    tool(Step.POOL_BLOCKS, "zdb/sound"),
    replace(SCRUB, step=Step.POOL_SYNC),
    *(replace(DMESG, step=step) for step in CLIENT_LOGS),
    DMESG,
    nas_log(),
    documents=frozenset({PROOF, LEDGER}),
    manifest=ManifestFinding(is_due=True),
)
LATE = "one or more devices is currently unavailable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A damage, the evidence with it, and its steps."""

    name: str
    verdict: Verdict
    made: Evidence
    rests_on: tuple[Step, ...] = ()
    """The steps without which the same words would prove nothing."""

    @property
    def shown_by(self) -> frozenset[Step]:
        """The steps that differ from good evidence, and those on which they rest."""
        outputs = frozenset(GOOD.tools) ^ frozenset(self.made.tools)
        return frozenset(Step(output.step) for output in outputs) | frozenset(self.rests_on)


def with_tools(*tools: ToolOutput, drops: tuple[Step, ...] = ()) -> Evidence:
    """Good evidence with these outputs in place of those of their steps, or at the end."""
    replaced = {output.step: output for output in tools}
    good = without(GOOD, *drops).tools
    steps = {output.step for output in good}
    new = (output for output in tools if output.step not in steps)
    return replace(GOOD, tools=(*(replaced.get(one.step, one) for one in good), *new))


def failed_writer() -> Evidence:
    events = (
        begun(200.0, 9, OperationKind.OVERWRITE),
        Failed(t_ms=210.0, seq=9, errno=5, call="fsync"),
    )
    return replace(GOOD, ledger=replace(GOOD.ledger, events=(*GOOD.ledger.events, *events)))


PLANTED = (
    Planted(name="import -F", verdict=Verdict.ROLLED_BACK, made=with_tools(
        *refused(*IMPORTS[:2]), tool(IMPORTS[2], "zpool/import-rewound"))),
    Planted(name="import -m", verdict=Verdict.REPAIRED, made=with_tools(
        *refused(IMPORTS[0]), tool(IMPORTS[1], "zpool/import-ok"))),
    Planted(name="import again", verdict=Verdict.REPAIRED, made=replace(
        GOOD, tools=(*refused(IMPORTS[0]), *GOOD.tools))),
    Planted(name="data errors", verdict=Verdict.CORRUPTED, made=with_tools(DATA_ERRORS)),
    Planted(name="leaks", verdict=Verdict.CORRUPTED, made=with_tools(
        tool(Step.POOL_BLOCKS, "zdb/blocks-spoiled"))),
    Planted(name="panic", verdict=Verdict.UNAVAILABLE, made=with_tools(
        nas_log("PANIC at zio.c:341:zio_buf_alloc()"))),
    Planted(name="replay", verdict=Verdict.CORRUPTED, made=with_tools(
        nas_log("WARNING: ZFS replay transaction error 5, dataset tank/vm, seq 0x7, txtype 9"))),
    Planted(name="first check", verdict=Verdict.REPAIRED, made=with_tools(
        replace(REPAIR[0], step=Step.FS_FIRST_CHECK))),
    Planted(name="repair", verdict=Verdict.REPAIRED, rests_on=(Step.FS_UMOUNT,), made=read(
        with_tools(*REPAIR), EVERYTHING, after_repair=True)),
    Planted(name="refused mount", verdict=Verdict.REPAIRED, made=read(
        with_tools(WONT_MOUNT[0], *REPAIR[1:], drops=(Step.FS_UMOUNT, Step.FS_CHECK)),
        EVERYTHING, after_repair=True)),
    Planted(name="unmountable", verdict=Verdict.UNREPAIRABLE, made=with_tools(
        *WONT_MOUNT, drops=(Step.FS_UMOUNT,))),
    Planted(name="bad copy", verdict=Verdict.REPAIRED, made=with_tools(replace(
        DMESG, stdout=f"{DMESG.stdout}[ 9.1] BTRFS warning (device vdb): checksum verify failed\n"))),
    Planted(name="lost root", verdict=Verdict.OFFLINE, made=with_tools(
        replace(DMESG, step=Step.CLIENT_LOST_ROOT, stderr="it panicked"), drops=CLIENT_LOGS)),
    Planted(name="failed writer", verdict=Verdict.OFFLINE, made=failed_writer()),
    Planted(name="old data", verdict=Verdict.ROLLED_BACK, made=read(GOOD, OLD)),
)  # fmt: skip

Spoil = Callable[[Evidence], Evidence]


def of_step(step: Step, change: Callable[[ToolOutput], ToolOutput | None]) -> Spoil:
    def spoil(made: Evidence) -> Evidence:
        changed = (change(one) if one.step == step else one for one in made.tools)
        return replace(made, tools=tuple(one for one in changed if one is not None))

    return spoil


def spoils(planted: Planted, *, shown: bool) -> Iterator[tuple[str, Spoil]]:
    """Every way to spoil a step, of those that show the damage or of all others."""
    for step in dict.fromkeys(Step(output.step) for output in planted.made.tools):
        if (step in planted.shown_by) is shown:
            yield f"{step} gone", of_step(step, lambda _: None)
            yield f"{step} late", of_step(step, lambda one: replace(one, exit_code=None))
            yield f"{step} killed", of_step(step, lambda one: replace(one, exit_code=137))
            yield f"{step} empty", of_step(step, lambda one: replace(one, stdout="", stderr=""))
            half = lambda one: replace(one, stdout=one.stdout[: len(one.stdout) // 2])  # noqa: E731
            yield f"{step} halved", of_step(step, half)
            ours = "zpool: out of memory\n"
            lost = partial(replace, exit_code=1, stdout="", stderr=ours)
            yield f"{step} refused", of_step(step, lost)
    if not shown:
        is_data = planted.name in ("old data", "failed writer")
        if not is_data:
            yield "ledger garbled", lambda e: replace(e, ledger=replace(e.ledger, garbled=1))
        if planted.name != "old data":
            yield "read-back gone", lambda e: replace(e, readbacks={})


def at_once(spoils: Sequence[tuple[str, Spoil]], way: str) -> Spoil:
    """All spoils of one way together."""
    return lambda made: reduce(
        lambda one, spoil: spoil[1](one), (one for one in spoils if one[0].endswith(way)), made
    )


def test_good_evidence_is_intact() -> None:
    assert judge(GOOD).verdict is Verdict.INTACT


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_damage_stands_when_anything_else_is_spoilt(planted: Planted) -> None:
    assert judge(planted.made).verdict is planted.verdict
    others = list(spoils(planted, shown=False))
    ways = {words: words.rpartition(" ")[2] for words, _ in others}
    chosen = [*others, *((f"each {way}", at_once(others, way)) for way in set(ways.values()))]
    found = [(words, judge(spoil(planted.made)).verdict) for words, spoil in chosen]
    assert [
        (words, now)
        for words, now in found
        if not now.is_damage or now.badness < planted.verdict.badness
    ] == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_spoilt_evidence_of_a_damage_is_never_intact(planted: Planted) -> None:
    """Half of a log is a log, too: only the manifest's hash shows that (`test_removals.py`)."""
    logs = (f"{Step.NAS_DMESG} halved", f"{Step.CHECK_DMESG} halved")
    ways = [(name, spoil) for name, spoil in spoils(planted, shown=True) if name not in logs]
    spoilt = [(name, judge(spoil(planted.made))) for name, spoil in ways]
    assert [name for name, found in spoilt if found.verdict is Verdict.INTACT] == []


OUT_OF_MEMORY = "ERROR: failed to read tree block: Cannot allocate memory\n"


@pytest.mark.parametrize(
    ("filesystem", "case", "change"),
    [
        ("btrfs", "btrfs/fs-tree-old-look", lambda said: said + OUT_OF_MEMORY),
        ("btrfs", "btrfs/fs-tree-old-look", lambda said: said.replace("error(s) found", "")),
        ("ext4", "e2fsck/bad-inodes-look", lambda said: said.rpartition("disk.img: ")[0]),
        ("xfs", "xfs/free-blocks-look", lambda said: said + "xfs_repair: Cannot allocate memory\n"),
    ],
)
def test_errors_of_a_checker_stand_though_it_lacked_something_later(
    filesystem: str, case: str, change: Callable[[str], str]
) -> None:
    check = tool(Step.FS_CHECK, case)
    spoilt = replace(check, stdout=change(check.stdout), stderr=change(check.stderr))
    assert judge(evidence(spoilt, filesystem=filesystem)).verdict is Verdict.REPAIRED
    nothing = replace(check, stdout="", stderr=OUT_OF_MEMORY)
    assert judge(evidence(nothing, filesystem=filesystem)).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("state", ["SUSPENDED", "FAULTED", "UNAVAIL", "of a version to come"])
def test_a_pool_in_a_state_that_does_not_serve_is_corrupted(state: str) -> None:
    ended = STATUS.stdout.replace('"state":"ONLINE"', f'"state":"{state}"', 1)
    assert ended != STATUS.stdout
    assert judge(with_tools(replace(STATUS, stdout=ended))).pool is Verdict.CORRUPTED


def test_an_import_that_may_have_come_before_its_disks_shows_no_damage() -> None:
    [late] = refused(IMPORTS[0], why=LATE)
    assert judge(replace(GOOD, tools=(late, *GOOD.tools))).verdict is Verdict.INTACT
    once = judge(replace(GOOD, tools=(late,)))
    assert once.verdict is Verdict.INCONCLUSIVE
    assert judge(replace(GOOD, tools=(late, late))).verdict is Verdict.REPAIRED, "at least -m"


def test_a_loss_whose_number_is_unknown_counts_as_a_loss() -> None:
    lost = judge(
        replace(read(GOOD, OLD), manifest=ManifestFinding(is_due=True, verdict="rolled-back"))
    )
    assert record_of(lost).is_loss
    stated = ManifestFinding(is_due=True, verdict="rolled-back", complaints=("something is gone",))
    for found in (None, EVERYTHING, "{"):
        left = judge(replace(read(GOOD, found), manifest=stated))
        assert (left.verdict, left.lost) == (Verdict.ROLLED_BACK, 0)
        assert record_of(left).is_loss
    whole = judge(with_tools(tool(Step.POOL_BLOCKS, "zdb/blocks-spoiled")))
    assert not record_of(whole).is_loss, "its data are there, all of them"
    assert not record_of(judge(GOOD)).is_loss


def test_a_trial_that_was_inconclusive_is_no_damage_once_evidence_is_gone() -> None:
    """The lost evidence may be the reason, e.g. a disk of the checker that failed."""
    said = ManifestFinding(is_due=True, verdict="inconclusive", complaints=("a log is gone",))
    for planted in PLANTED:
        assert judge(replace(planted.made, manifest=said)).verdict is Verdict.INCONCLUSIVE
        whole = replace(said, complaints=())
        assert judge(replace(planted.made, manifest=whole)).verdict is planted.verdict


def record_of(found: Judgement) -> TrialRecord:
    return TrialRecord(trial="t", cell="c", judgement=found)


@pytest.mark.parametrize("name", [OUTAGE, ADMINISTRATION, *(kind.FILE for kind in part_kinds())])
def test_a_document_that_is_there_and_says_nothing_leaves_no_trial_intact(name: str) -> None:
    for manifest in (GOOD.manifest, ManifestFinding()):
        made = replace(GOOD, documents=GOOD.documents | {name}, manifest=manifest)
        assert judge(made).verdict is Verdict.INCONCLUSIVE
        assert f"{name} is garbled" in judge(made).reasons


def test_a_pool_that_is_lost_stays_lost_in_an_outage_of_the_nas() -> None:
    outage = Outage(what="the import hung", of_nas=True)
    lost = replace(without(GOOD, *IMPORTS), outage=outage)
    lost = replace(lost, tools=(*refused(*IMPORTS), *lost.tools))
    assert judge(lost).pool is judge(lost).verdict is Verdict.POOL_LOST


def test_errors_of_a_checker_that_ignored_the_journal_show_no_damage() -> None:
    check = tool(Step.FS_CHECK, "e2fsck/bad-inodes-look")
    ignored = "Warning: skipping journal recovery because doing a read-only filesystem check.\n"
    cut_off = check.stdout.rpartition("disk.img: ")[0]
    for before, verdict in (("", Verdict.REPAIRED), (ignored, Verdict.INCONCLUSIVE)):
        spoilt = replace(check, stdout=before + cut_off)
        assert judge(evidence(spoilt, filesystem="ext4")).verdict is verdict


def test_of_an_administration_one_unreadable_look_hides_no_half_of_another() -> None:
    looked: list[Printed] = []

    def read_it(printed: Printed) -> Outcome:
        looked.append(printed)
        if len(looked) == 1:
            raise UnreadableError("cut off")
        return Outcome.HALF

    one = cast(Administration, SimpleNamespace(questions=("q",), read=read_it))
    states = replace(GOOD, tools=(replace(SCRUB, step=Step.ADMINISTRATION_STATE),) * 2)
    found = check_administration(states, Terms(), {}, administration=one)
    assert (found.verdict, found.unknown) == (Verdict.CORRUPTED, ("cut off",))


def test_a_verdict_of_an_older_judge_is_none_where_nothing_is_missing() -> None:
    said = ManifestFinding(is_due=True, verdict="corrupted")
    assert judge(replace(GOOD, manifest=said)).verdict is Verdict.INTACT


def test_a_missing_disk_is_no_damage_while_the_cut_is_unknown() -> None:
    short = with_tools(tool(Step.POOL_STATUS, "zpool/status-short-of-a-leg"))
    assert judge(short).pool is Verdict.REPAIRED
    assert judge(replace(short, is_cut_read=False)).pool is None


def test_a_failed_disk_of_the_checker_condemns_no_filesystem_of_a_pool_that_was_not_read() -> None:
    imported = (*refused(IMPORTS[0]), tool(IMPORTS[1], "zpool/import-ok"))
    made = with_tools(*imported, failed_disk(after_unmount=True), *WONT_MOUNT)
    assert judge(made).filesystem is Verdict.UNREPAIRABLE, "the pool explains it"
    unread = judge(without(made, Step.POOL_SCRUB))
    assert (unread.verdict, unread.filesystem) == (Verdict.REPAIRED, None)


def test_a_failed_writer_is_none_by_a_ledger_that_lacks_lines() -> None:
    made = failed_writer()
    short = replace(made, ledger=replace(made.ledger, garbled=1))
    assert judge(short).verdict is Verdict.INCONCLUSIVE

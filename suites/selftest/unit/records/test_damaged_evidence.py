"""Evidence that is cut off, garbled or gone makes a trial inconclusive, and no finding of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import EVERYTHING, evidence, refused, tool
from suites.selftest.unit.made_records import changed
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument
from torture.facts.evidence.folder import (
    CUT,
    IMPORTS,
    LEDGER,
    OUTAGE,
    READBACK,
    SPEC,
    Outage,
    Step,
    ToolOutput,
    append_line,
    append_tool,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import cut_mark
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.scoring.judge import judge
from torture.records.scoring.score import rejudge, rejudge_trial, score

LIVES = "iscsi-standard-noslog-btrfs-nasonly"
DIES = "iscsi-standard-noslog-btrfs-bothdie"
BROKEN = AuditDocument(broken=2, findings=("acknowledged-is-durable at event 7",))
AT_CUT = CutDocument(t_ms=500.0, marks=13)
LAST_WORDS = tool(Step.CLIENT_DMESG, "kernel/log-replayed")


def _line(**event: object) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _received() -> list[bytes]:
    """The lines of `good_evidence.ledger`, as a load sends them: thirteen up to the cut."""
    lines = [_line(event="hello", t_ms=0, trial=7, mode="files")]
    for kind, first in (("create", 1), ("overwrite", 4)):
        for file in range(3):
            seq, t_ms = first + file, 10 * len(lines)
            begun = {"seq": seq, "writer": 0, "op": kind, "file": file, "blocks": [0], "size": 1}
            lines.append(_line(event="begin", t_ms=t_ms, **begun))
            lines.append(_line(event="done", t_ms=t_ms + 5, seq=seq))
    return lines


END = _line(event="end", t_ms=900, stuck=[])
WHOLE = (*_received(), cut_mark(500.0), END)


def store(
    folder: Path,
    ledger: Sequence[bytes] = WHOLE,
    *more: ToolOutput,
    cell: str = LIVES,
    cut: CutDocument = AT_CUT,
) -> Path:
    """A trial of which all came back, as its folder has it."""
    spec = TrialSpec(cell=Cell.parse(cell), index=0, seed=1, load_ms=4000)
    folder = folder / spec.trial
    folder.mkdir(parents=True)
    write_document(folder, SPEC, spec.as_json())
    write_document(folder, CUT, cut.as_json())
    write_document(folder, READBACK, EVERYTHING)
    for line in ledger:
        append_line(folder / LEDGER, line)
    for output in (*evidence().tools, *more):
        append_tool(folder, output)
    return folder


def verdict_of(folder: Path) -> Verdict:
    return judge(load_evidence(folder)).verdict


def test_whole_evidence_is_intact(tmp_path: Path) -> None:
    assert verdict_of(store(tmp_path / "lives", WHOLE, LAST_WORDS)) is Verdict.INTACT
    assert verdict_of(store(tmp_path / "dies", WHOLE[:-1], cell=DIES)) is Verdict.INTACT


def test_a_standby_that_does_not_take_over_needs_no_cut(tmp_path: Path) -> None:
    folder = store(tmp_path, WHOLE[:-1], cell=DIES)
    for name in (CUT, READBACK):
        (folder / name).unlink()
    assert verdict_of(folder) is Verdict.INCONCLUSIVE
    what = "the standby did not import: no such pool"
    outage = Outage(stage="load", what=what, machine="nas-standby", of_nas=True)
    write_document(folder, OUTAGE, outage.as_json())
    judgement = judge(load_evidence(folder))
    assert judgement.verdict is Verdict.UNAVAILABLE
    assert judgement.reasons[0] == f"nas-standby, load: {what}"


@pytest.mark.parametrize("left", range(13))
def test_a_ledger_that_is_cut_off_before_the_cut_is_no_corruption(
    left: int, tmp_path: Path
) -> None:
    """Lines that are gone from the ledger look as if they had never been written."""
    assert verdict_of(store(tmp_path, WHOLE[:left])) is Verdict.INCONCLUSIVE


def test_lines_from_after_the_cut_do_not_replace_lines_from_before_it(tmp_path: Path) -> None:
    gap = (*WHOLE[:9], *WHOLE[11:])
    judgement = judge(load_evidence(store(tmp_path, gap)))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "12 of 13 lines" in " ".join(judgement.reasons)


def test_a_ledger_without_its_cuts_is_cut_off(tmp_path: Path) -> None:
    assert verdict_of(store(tmp_path / "one", WHOLE[:13], cell=DIES)) is Verdict.INCONCLUSIVE
    twice = structs.replace(AT_CUT, second=CutDocument(t_ms=800.0))
    again = tool(Step.POOL_IMPORT_AGAIN, "zpool/import-ok")
    one_is_gone = store(tmp_path / "two", WHOLE[:14], LAST_WORDS, again, cut=twice)
    assert verdict_of(one_is_gone) is Verdict.INCONCLUSIVE
    both = (*WHOLE[:14], cut_mark(800.0))
    both_there = store(tmp_path / "both", both, LAST_WORDS, again, cut=twice)
    assert verdict_of(both_there) is Verdict.INTACT


def test_a_load_that_was_ended_says_so(tmp_path: Path) -> None:
    """A load that could not be ended, as in a client that lost its root, does not."""
    no_end = WHOLE[:14]
    assert verdict_of(store(tmp_path / "ended", no_end, LAST_WORDS)) is Verdict.INCONCLUSIVE
    assert verdict_of(store(tmp_path / "replayed", no_end)) is Verdict.INTACT
    gone = replace(LAST_WORDS, step=Step.CLIENT_LOST_ROOT, stderr="it panicked")
    lost_root = store(tmp_path / "lost root", no_end, LAST_WORDS, gone)
    assert verdict_of(lost_root) is Verdict.OFFLINE


def test_of_an_earlier_cut_only_the_lines_before_it_have_to_be_there(tmp_path: Path) -> None:
    earlier = structs.replace(
        AT_CUT, confirmed=Confirmation(finding="f", event=7, marks=13, t_ms=400.0)
    )
    late = structs.replace(earlier, marks=40)
    assert verdict_of(store(tmp_path / "there", WHOLE[:13], cut=late)) is Verdict.INTACT
    assert verdict_of(store(tmp_path / "gone", WHOLE[:12], cut=late)) is Verdict.INCONCLUSIVE


def test_old_trials_that_counted_no_lines_are_judged_as_they_were(tmp_path: Path) -> None:
    assert verdict_of(store(tmp_path, WHOLE[:13], cut=CutDocument(t_ms=5.0))) is Verdict.INTACT


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"t_ms": 5.0, "mar'])
def test_without_the_cuts_line_no_trial_is_intact_and_the_loss_is_unknown(
    content: bytes | None, tmp_path: Path
) -> None:
    """An earlier cut than the drawn one may have been recovered: what is old may have to be old."""
    folder = store(tmp_path)
    if content is None:
        (folder / CUT).unlink()
    else:
        (folder / CUT).write_bytes(content)
    assert verdict_of(folder) is Verdict.INCONCLUSIVE
    write_document(folder, READBACK, EVERYTHING.replace("4", "1"))
    judgement = judge(load_evidence(folder))
    assert (judgement.verdict, judgement.data) == (Verdict.INCONCLUSIVE, None)
    assert any(CUT in reason for reason in judgement.reasons)


def test_a_pool_that_is_lost_is_lost_without_a_readable_cut(tmp_path: Path) -> None:
    folder = store(tmp_path)
    (folder / CUT).write_bytes(b"{")
    found = load_evidence(folder)
    lost = judge(replace(found, tools=refused(*IMPORTS)))
    assert (lost.verdict, lost.lost) == (Verdict.POOL_LOST, 6)
    assert "at least" in lost.reasons[0]


def rejudged_after(
    run: RunLayout, *, record: TrialRecord, cut: bytes | None = None
) -> tuple[TrialRecord, tuple[str, ...]]:
    """The record that judging again makes, once its `cut.json` says this."""
    append_record(run.trials_file, record)
    if cut is not None:
        (run.evidence / record.trial / CUT).write_bytes(cut)
    now = rejudge(run.folder)
    return now.records[0], now.changes


@pytest.fixture
def run(tmp_path: Path) -> RunLayout:
    layout = RunLayout(folder=tmp_path)
    store(layout.evidence, WHOLE, LAST_WORDS, cut=structs.replace(AT_CUT, audit=BROKEN))
    return layout


@pytest.fixture
def record(run: RunLayout) -> TrialRecord:
    [folder] = run.evidence.iterdir()
    return score(folder, timings={})


def test_a_sound_trial_is_judged_again_without_a_change(
    run: RunLayout, record: TrialRecord
) -> None:
    assert rejudged_after(run, record=record) == (record, ())


def test_a_trial_whose_machinery_failed_keeps_its_record(
    run: RunLayout, record: TrialRecord
) -> None:
    """Its evidence may show the fault of the machinery: its disks may have failed it."""
    failed = changed(record, verdict=Verdict.INCONCLUSIVE, machinery_failed=True, error="no disks")
    assert rejudged_after(run, record=failed) == (failed, ())
    assert rejudge_trial(run.evidence / record.trial) == (failed, failed)


def test_a_finding_of_the_audit_outlives_the_cut_document(
    run: RunLayout, record: TrialRecord
) -> None:
    now, changes = rejudged_after(run, record=record, cut=b'{"audit": {"brok')
    assert now.cut.audit == BROKEN
    assert changes == (f"{record.trial}: intact is inconclusive now",)


def test_a_broken_guarantee_and_another_audit_are_changes(
    run: RunLayout, record: TrialRecord
) -> None:
    sound = json.dumps(structs.replace(AT_CUT, audit=AuditDocument(broken=0)).as_json()).encode()
    _, (change,) = rejudged_after(run, record=record, cut=sound)
    assert "the guarantee that was broken is kept now" in change
    assert "the audit, which had 2 broken, has 0 broken now" in change
    assert "intact is" not in change


def test_damage_that_only_a_removed_disk_explains_is_no_corruption_without_the_cut() -> None:
    short = evidence(tool(Step.POOL_BLOCKS, "zdb/gives-up-without-log"))
    assert judge(short).verdict is Verdict.CORRUPTED
    assert judge(replace(short, is_cut_read=False)).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"cell": "punchcard-standard-noslog-btrfs-nasonly"}', "punchcard"),
        (b'{"cell": "iscsi-standard-noslog-btrfs-nasonly"}', "lacks 'index'"),
        (b'{"cell": 7}', "does not describe a trial"),
        (b"[" * 100_000, "no readable spec.json"),
        (b'{"cell": "isc', "no readable spec.json"),
    ],
)
def test_a_trial_that_cannot_be_judged_is_reported_and_the_others_are_judged(
    run: RunLayout, record: TrialRecord, content: bytes, why: str
) -> None:
    other = store(run.evidence, WHOLE[:-1], cell=DIES)
    append_record(run.trials_file, record)
    append_record(run.trials_file, changed(score(other, timings={}), verdict=Verdict.CORRUPTED))
    (run.evidence / record.trial / SPEC).write_bytes(content)
    now = rejudge(run.folder)
    assert now.records[0] == record
    (sentence,) = now.unjudged
    assert sentence.startswith(record.trial)
    assert why in sentence
    assert "next: " in sentence
    assert now.changes[0].startswith(f"{other.name}: corrupted is intact now")


def test_a_record_whose_name_leads_elsewhere_stays_as_it_is(
    run: RunLayout, record: TrialRecord
) -> None:
    append_record(run.trials_file, structs.replace(record, trial="../../elsewhere"))
    now = rejudge(run.folder)
    assert now.records[0].trial == "../../elsewhere"
    assert "no name of a folder" in now.unjudged[0]


def test_a_read_back_that_is_nested_too_deeply_is_inconclusive() -> None:
    deep = judge(evidence(found="[" * 100_000))
    assert deep.verdict is Verdict.INCONCLUSIVE
    assert any("the read-back cannot be read" in reason for reason in deep.reasons)
    unchecked = tool(Step.FS_CHECK, "btrfs/clean", exit_code=None)
    assert judge(evidence(unchecked, found="[" * 100_000)).verdict is Verdict.INCONCLUSIVE

"""The phases of the cuts, counted over live trials, drawn on the page and listed in a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.matrix.guarantees import guarantee_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut
from torture.facts.evidence.phase import Phase
from torture.facts.stats.rates import in_words
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.exports.as_phases import export_phases
from torture.report.page.render import render_page
from torture.report.reading.store import Store

PHASES = (Phase.ZIL_WRITTEN, Phase.ZIL_WRITTEN, Phase.METADATA_WRITTEN, Phase.IDLE)
HEADING = "Where the cuts fell"


def records(n: int) -> list[TrialRecord]:
    made = make_records(n, cells=cells_of(Matrix.QUICK), seed=3)
    return [
        replace(record, cut=replace(record.cut, phase=phase))
        for record, phase in zip(made, cycle(PHASES), strict=False)
    ]


def test_live_cuts_are_counted_by_their_phase(tmp_path: Path) -> None:
    made = records(23)
    again = replace(made[0], origin=Origin.REPLAY, repeats=made[0].trial, origin_run="r")
    with Store.open([write_run(tmp_path / "run", [*made, again])]) as store:
        found = store.phases()
        page = render_page(store)
    assert dict(found) == Counter(record.cut.phase for record in made)
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
    assert HEADING in page
    assert "metadata written" in page


def test_without_phases_nothing_is_drawn(tmp_path: Path) -> None:
    old = [replace(record, cut=CutDocument()) for record in records(5)]
    with Store.open([write_run(tmp_path / "run", old)]) as store:
        assert store.phases() == ()
        assert HEADING not in render_page(store)


def cut_of(
    cell: str, phase: Phase, *, lost: int = 0, unflushed: int = 0, in_flight: int = 0
) -> TrialRecord:
    [made] = make_records(1, cells=[Cell.parse(cell)], seed=hash((cell, phase)) % 999)
    audit = AuditDocument(
        acknowledgements=7, completions=11, txgs=2, broken=0, under_way=0, took_ms=40
    )
    disks = {"data0": DiskAtCut(unflushed=unflushed, in_flight=in_flight)}
    verdict = Verdict.CORRUPTED if lost else Verdict.INTACT
    cut = CutDocument(phase=phase, audit=audit, disks=disks)
    guarantee = guarantee_of(Cell.parse(cell))
    return changed(made, verdict=verdict, lost=lost, cut=cut, guarantee=guarantee)


def table_of(records: list[TrialRecord], folder: Path) -> str:
    with Store.open([write_run(folder / "run", records)]) as store:
        (made,) = export_phases(store, folder)
    return made.read_text()


def test_a_phase_of_the_log_is_counted_among_the_cells_that_write_one(tmp_path: Path) -> None:
    always, disabled = (f"iscsi-{sync}-noslog-btrfs-bothdie" for sync in ("always", "disabled"))
    table = table_of(
        [
            cut_of(always, Phase.ZIL_WRITTEN, unflushed=2),
            cut_of(always, Phase.IDLE),
            cut_of(disabled, Phase.METADATA_WRITTEN, lost=3, unflushed=1, in_flight=1),
            cut_of("nfs4-export_async-standard-noslog-files-bothdie", Phase.TRIMMING),
            replace(cut_of(always, Phase.IDLE), origin=Origin.REPLAY, trial="x", repeats="x"),
        ],
        tmp_path,
    )
    assert "| zil-written | 2 | 1/2 50 % |" in table
    assert "| metadata-written | 4 | 1/4 25 % |" in table
    assert "| a write that no flush covered | 2/4 50 % |" in table
    assert "| a write in flight | 1/4 25 % |" in table
    assert "| nothing that could have been lost (empty) | 2/4 50 % |" in table
    assert "| safe | 2 | 0/2 0 % [0-85 %] | 14 | 22 | 4 | 0 | 40 ms, 40 ms |" in table
    assert "| rolls back | 2 | 1/2 50 % [" in table


def test_a_table_of_records_without_phases_says_so(tmp_path: Path) -> None:
    old = [replace(record, cut=CutDocument()) for record in records(2)]
    assert "No record has a phase." in table_of(old, tmp_path)


def test_losses_count_all_trials_with_or_without_a_phase(tmp_path: Path) -> None:
    """A trial whose machinery failed has no cut, and may have lost something all the same."""
    safe = "iscsi-always-noslog-btrfs-bothdie"
    sound = cut_of(safe, Phase.IDLE)
    audited = CutDocument(audit=AuditDocument(acknowledgements=1_000))
    other = replace(sound, trial="other", cut=audited)
    failed = changed(sound, trial="failed", cut=CutDocument(), verdict=Verdict.INCONCLUSIVE)
    table = table_of([sound, other, failed], tmp_path)
    assert "| safe | 2 | 0/2 0 % [0-85 %]; 1 inconclusive: as safe 0/3" in table
    assert "| 1,007 |" in table, "its audit counts, too"
    assert "| idle | 1 | 1/1 100 % |" in table


def test_theory_is_todays(tmp_path: Path) -> None:
    before = replace(
        cut_of("iscsi-always-noslog-btrfs-bothdie", Phase.IDLE), guarantee=Guarantee.LOSES
    )
    table = table_of([before], tmp_path)
    assert "| safe | 1 | 0/1" in table
    assert f"| {Guarantee.LOSES} |" not in table
    assert "\n- " in table, "the note that says so"


def test_a_run_that_stopped_by_itself_has_intervals_of_its_kind(tmp_path: Path) -> None:
    sound = cut_of("iscsi-always-noslog-btrfs-bothdie", Phase.IDLE)
    run = write_run(tmp_path / "run", [sound], options={"until": "upper<0.01"})
    with Store.open([run]) as store:
        (made,) = export_phases(store, tmp_path)
    text = made.read_text()
    assert f"| safe | 1 | {in_words(sequential_rate_of(0, 1))} |" in text
    assert f"| {Phase.IDLE} | 1 | 1/1 100 % |" in text, "a share of phases has no interval"

"""Where the cuts fell, and what the disks kept: counted over live trials, and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from duckdb import DuckDBPyConnection
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut, Phase
from torture.facts.stats.rates import in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.figures.tables import Fallen, fallen_cuts, kept_by_disks
from torture.report.page.render import render_page
from torture.report.reading.store import Store

PHASES = (Phase.ZIL_WRITTEN, Phase.ZIL_WRITTEN, Phase.METADATA_WRITTEN, Phase.IDLE)
Queried = TypeVar("Queried")
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
        found = [own[:2] for own in fallen_cuts(store.sql)]
        page = render_page(store)
    assert dict(found) == Counter(record.cut.phase for record in made)
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
    assert HEADING in page
    assert "metadata written" in page


def test_without_phases_nothing_is_drawn(tmp_path: Path) -> None:
    old = [replace(record, cut=CutDocument()) for record in records(5)]
    with Store.open([write_run(tmp_path / "run", old)]) as store:
        assert fallen_cuts(store.sql) == ()
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


def with_store(
    records: list[TrialRecord],
    folder: Path,
    query: Callable[[DuckDBPyConnection], Queried],
    **more: Any,
) -> Queried:
    with Store.open([write_run(folder / "run", records, **more)]) as store:
        return query(store.sql)


def test_each_phase_counts_the_risks_of_its_cuts(tmp_path: Path) -> None:
    always, disabled = (f"iscsi-{sync}-noslog-btrfs-bothdie" for sync in ("always", "disabled"))
    made = [
        cut_of(always, Phase.ZIL_WRITTEN, unflushed=2),
        cut_of(always, Phase.IDLE),
        cut_of(disabled, Phase.METADATA_WRITTEN, lost=3, unflushed=1, in_flight=1),
        replace(cut_of(always, Phase.IDLE), origin=Origin.REPLAY, trial="x", repeats="x"),
    ]
    assert with_store(made, tmp_path, fallen_cuts) == (
        Fallen("idle", cuts=1, at_risk=0, unflushed=0, in_flight=0, empty=1),
        Fallen("metadata-written", cuts=1, at_risk=1, unflushed=1, in_flight=1, empty=0),
        Fallen("zil-written", cuts=1, at_risk=1, unflushed=1, in_flight=0, empty=0),
    )
    with Store.open([tmp_path / "run"]) as store:
        page = render_page(store)
    assert "<td>all</td><td>3</td><td>2</td><td>2</td><td>1</td><td>1</td>" in page


def test_losses_are_counted_by_guarantee_and_by_policy(tmp_path: Path) -> None:
    always, disabled = (f"iscsi-{sync}-noslog-btrfs-bothdie" for sync in ("always", "disabled"))
    sound, gone = kept_by(always, "flushed"), kept_by(disabled, "torn")
    gone = changed(gone, verdict=Verdict.POOL_LOST)
    damaged = changed(kept_by(always, "flushed"), trial="d", verdict=Verdict.CORRUPTED, lost=2)
    old = changed(kept_by(always, "flushed"), trial="o", guarantee=Guarantee.LOSES)
    unknown = changed(sound, trial="u", verdict=Verdict.INCONCLUSIVE)
    silent = replace(sound, trial="s", cut=CutDocument(phase=Phase.IDLE))
    rows = with_store([sound, gone, damaged, old, unknown, silent], tmp_path, kept_by_disks)
    assert [(row.guarantee, row.policies, row.harm, row.lost_pool) for row in rows] == [
        ("rolls back", "torn", rate_of(1, 1), rate_of(1, 1)),
        ("safe", "flushed", rate_of(1, 3), rate_of(0, 3)),
    ]
    with Store.open([tmp_path / "run"]) as store:
        page = render_page(store)
    assert f"<td>safe</td><td>flushed</td><td>{in_words(rate_of(1, 3))}</td>" in page


def test_a_loss_that_only_a_later_try_shows_is_in_no_lower_bound(tmp_path: Path) -> None:
    first = kept_by("iscsi-always-noslog-btrfs-bothdie", "torn")
    cut = replace(first.cut, t_ms=9.0)
    later = changed(first, cut=cut, verdict=Verdict.CORRUPTED, lost=2)
    [row] = with_store([first, later], tmp_path, kept_by_disks)
    assert row.harm == rate_of(1, 1, later=1)
    assert row.harm.low == 0


def test_a_run_that_stopped_by_itself_has_intervals_of_its_kind(tmp_path: Path) -> None:
    sound = kept_by("iscsi-always-noslog-btrfs-bothdie", "torn")
    [row] = with_store([sound], tmp_path, kept_by_disks, options={"until": "upper<0.01"})
    assert row.harm == sequential_rate_of(0, 1)


def kept_by(cell: str, policy: str) -> TrialRecord:
    made = cut_of(cell, Phase.IDLE)
    disks = {"data0": DiskAtCut(unflushed=1, policy=policy, persistence="volatile")}
    return replace(made, cut=replace(made.cut, disks=disks))

"""Rates, their exact intervals, and the table that shows them.

Where the cuts fell, and what the disks kept: counted over live trials, and on the page.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

import pytest
from duckdb import DuckDBPyConnection
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from suites.selftest.unit.every_cell import longest_name
from suites.selftest.unit.made_records import changed, record_in
from suites.selftest.unit.report_records import figures_of, make_records, page_of, write_run
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut, Phase
from torture.facts.stats.rates import in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.figures.tables import Fallen, fallen_cuts, kept_by_disks
from torture.report.figures.wording import unknown_in_words
from torture.report.page.render import render_page
from torture.report.reading.store import Store
from torture.report.terminal import (
    effort_line,
    fallen_lines,
    outcome_table,
)

SAFE = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
LOSES = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")


def trials(cell: Cell, **counts: int) -> list[TrialRecord]:
    """So many records of each verdict, by its name in Python; every loss costs one guarantee."""
    return [
        record_in(
            cell,
            Verdict[verdict],
            trial=f"{cell.name}.{verdict}.{number}",
            seed=number,
            acknowledged=1,
            lost=int(Verdict[verdict].is_loss),
        )
        for verdict, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("events", "of", "low", "high"),
    [
        (0, 300, 0.0, 0.0122),
        (37, 100, 0.2756, 0.4724),
        (0, 20, 0.0, 0.1684),
        (20, 20, 0.8316, 1.0),
        (1, 2, 0.0126, 0.9874),
    ],
)
def test_intervals_are_the_known_ones(events: int, of: int, low: float, high: float) -> None:
    """Clopper and Pearson's; with no events the upper end is 1 - 0.025 ** (1 / n)."""
    rate = rate_of(events, of)
    assert rate.low == pytest.approx(low, abs=5e-5)
    assert rate.high == pytest.approx(high, abs=5e-5)
    assert rate.share == events / of


def test_of_no_trials_anything_is_possible() -> None:
    rate = rate_of(0, 0)
    assert (rate.low, rate.high) == (0.0, 1.0)
    assert in_words(rate) == "-"


@settings(deadline=None)
@given(st.integers(1, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_rate_and_mirrors(counts: tuple[int, int]) -> None:
    events, of = counts
    rate, mirrored = rate_of(events, of), rate_of(of - events, of)
    assert 0 <= rate.low <= rate.share <= rate.high <= 1
    assert rate.low == pytest.approx(1 - mirrored.high)
    assert rate.high == pytest.approx(1 - mirrored.low)


def test_an_inconclusive_trial_is_neither_safe_nor_loss() -> None:
    (row,) = figures_of(
        trials(LOSES, INTACT=2, REPAIRED=1, ROLLED_BACK=3, CORRUPTED=2, POOL_LOST=1, INCONCLUSIVE=5)
    )
    assert row.trials == 14
    assert row.inconclusive == 5
    assert (row.loss.events, row.loss.trials) == (6, 9)
    assert (row.corruption.events, row.corruption.trials) == (3, 9)


def test_loss_is_missing_data_and_corruption_depends_on_the_verdict() -> None:
    """A filesystem may be beyond repair with all of its data readable, and the other way round."""
    whole = [
        changed(record, lost=0, data=Verdict.INTACT)
        for record in trials(LOSES, UNREPAIRABLE=3, CORRUPTED=1)
    ]
    gone = [changed(record, lost=2) for record in trials(LOSES, REPAIRED=2, INCONCLUSIVE=4)]
    (row,) = figures_of([*whole, *gone])
    assert (row.loss.events, row.loss.trials) == (2, 6)
    assert (row.corruption.events, row.corruption.trials) == (4, 6)
    assert (row.harm.events, row.harm.trials) == (6, 6), "each trial once, be it one or the other"
    (row,) = figures_of([*trials(LOSES, INTACT=2, ROLLED_BACK=3), *whole])
    assert (row.harm.events, row.harm.trials) == (7, 9)
    (row,) = figures_of(trials(LOSES, INTACT=2, ROLLED_BACK=3, CORRUPTED=2))
    assert (row.harm.events, row.harm.trials) == (5, 7), "and not twice where it is both"


def test_only_inconclusive_trials_give_no_rate() -> None:
    (row,) = figures_of(trials(SAFE, INCONCLUSIVE=3))
    assert row.loss == row.corruption == rate_of(0, 0)


def printed(records: list[TrialRecord]) -> str:
    return shown(records, width=200)


def shown(records: list[TrialRecord], *, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(outcome_table(figures_of(records), width=width))
    return capture.get()


def test_the_table_has_every_verdict_and_both_intervals() -> None:
    every = {verdict: 11 + place for place, verdict in enumerate(Verdict)}
    conclusive = sum(every.values()) - every[Verdict.INCONCLUSIVE]
    losses = sum(count for verdict, count in every.items() if verdict.is_loss)
    corruptions = sum(count for verdict, count in every.items() if verdict.is_corruption)
    records = trials(LOSES, **{verdict.name: count for verdict, count in every.items()})
    table = shown(records, width=300)
    (row,) = (line for line in table.splitlines() if LOSES.name in line)
    words = row.split()
    assert words[:2] == [LOSES.name, "loses"]
    assert words[2 : 3 + len(every)] == [str(n) for n in (sum(every.values()), *every.values())]
    assert in_words(rate_of(losses, conclusive)) in row
    assert in_words(rate_of(corruptions, conclusive)) in row
    headed = table[: table.index(LOSES.name)]
    for verdict in Verdict:
        assert all(part in headed for part in verdict.split("-"))


def test_the_table_names_the_verdicts_that_did_not_occur() -> None:
    table = printed(trials(SAFE, INTACT=3))
    unseen = ", ".join(verdict for verdict in Verdict if verdict is not Verdict.INTACT)
    assert f"No trial was {unseen}." in " ".join(table.split())


def test_each_cells_rate_is_stated_with_inconclusive_trials_either_way() -> None:
    records = [*trials(SAFE, INTACT=8, INCONCLUSIVE=2), *trials(LOSES, CORRUPTED=3)]
    assert unknown_in_words(figures_of(records)) == [
        f"{SAFE.name}: 2 inconclusive; loss {in_words(rate_of(0, 10))} if these lost nothing, "
        f"{in_words(rate_of(2, 10))} if they did"
    ]


def test_an_interval_in_words() -> None:
    assert in_words(rate_of(0, 300)) == "0/300 0 % [0-1.23 %]"
    assert in_words(rate_of(37, 100)) == "37/100 37 % [27-48 %]"
    assert in_words(rate_of(3, 20)) == "3/20 15 % [3.2-38 %]"
    assert in_words(rate_of(20, 20)) == "20/20 100 % [83-100 %]"


def test_a_table_of_nothing_is_a_table() -> None:
    assert "cell" in printed([])


def test_the_effort_names_rate_and_stages_from_the_longest() -> None:
    [record] = trials(SAFE, INTACT=1)
    records = [
        replace(record, timings={"cut": 100, "check": 3000}),
        replace(record, timings={"cut": 100, "check": 4000, "load": 2800}),
    ]
    sentence = effort_line(records, elapsed_s=60.0)
    assert sentence == "2 trials in 1.0 min, 120/h: check 70%, load 28%, cut 2%"


def test_phases_are_summed_up() -> None:
    said = fallen_lines([Fallen("zil-written", 2, 2, 1, 0, 0), Fallen("idle", 1, 0, 0, 0, 1)])
    assert said == [
        "3 cuts: 2 with something at risk, 1 with a write that no flush covered, 0 with one in flight, "
        "1 empty",
        "where the cuts fell: zil-written 67%, idle 33%",
    ]
    assert fallen_lines([]) == []


def test_of_nothing_there_is_nothing_to_say() -> None:
    assert effort_line([], elapsed_s=0.0) == ""


@pytest.mark.parametrize("width", [80, 132])
def test_no_figure_is_cut_off_in_a_terminal(width: int) -> None:
    table = shown(trials(LOSES, INTACT=6, CORRUPTED=4), width=width)
    assert "…" not in table
    for figure in ("10", "6", "4", "40 %", "[12-74 %]"):
        assert figure in table.split() or figure in table


LONGEST = longest_name()
LONG = "iscsi-standard-volatile-nvdimm-mirrored-lyingdisks-btrfs-bothdie"


@pytest.mark.parametrize("width", [80, 100, 132, 200])
def test_the_longest_name_is_whole_and_cuts_no_figure_off(width: int) -> None:
    long = trials(Cell.parse(LONGEST), INTACT=15, ROLLED_BACK=15, CORRUPTED=15, POOL_LOST=15)
    table = shown([*long, *trials(LOSES, INTACT=5)], width=width)
    assert "…" not in table
    assert max(len(line.rstrip()) for line in table.splitlines()) <= width
    for figure in ("45/60 75 %", "[62-86 %]", "30/60 50 %", "[36-64 %]"):
        assert figure in table
    first_words = "".join(line.split()[0] for line in table.splitlines() if line.strip())
    assert LONGEST in first_words
    assert LOSES.name in first_words


def test_a_table_with_room_has_a_cell_on_one_line_with_its_guarantee() -> None:
    table = printed(trials(Cell.parse(LONG), INTACT=6, POOL_LOST=4))
    (row,) = (line for line in table.splitlines() if LONG in line)
    assert row.split()[1:4] == ["may", "lose", "10"]
    assert "the pool" in table


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
    page = page_of(tmp_path / "run")
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
    page = page_of(tmp_path / "run")
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

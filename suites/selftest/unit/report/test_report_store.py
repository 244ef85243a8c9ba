"""The store: each trial counts once, and its figures are those of the records."""

from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.examples import examples
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import ROLLBACK_MS_MAX, Guarantee, Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.loading import LoadFigure
from torture.report.reading.runs import find_run, find_runs
from torture.report.reading.store import Store

CELLS = cells_of(Matrix.DEFAULT)
RECORDS = tuple(make_records(1000, cells=CELLS, seed=3))


def counted(store: Store) -> dict[str, str]:
    return dict(store.sql.execute("SELECT trial, verdict FROM trials").fetchall())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("store") / "run", RECORDS)


def test_the_figures_are_those_of_the_records(run: Path) -> None:
    with Store.open([run]) as store:
        assert (store.trials, store.notes) == (len(RECORDS), ())
        cells = cell_figures(store.tallies())
    assert [figures.cell for figures in cells] == sorted({record.cell for record in RECORDS})
    for figures in cells:
        own = [record for record in RECORDS if record.cell == figures.cell]
        assert (figures.guarantee, figures.trials) == (own[0].guarantee, len(own))
        assert figures.verdicts == Counter(record.verdict for record in own)
        assert figures.axes == own[0].axes
        good = [record for record in own if record.verdict is not Verdict.INCONCLUSIVE]
        assert figures.conclusive == len(good)
        per_s = statistics.median(
            record.cut.acknowledged / record.timings["load"] * 1000
            for record in good
            if record.cut.acknowledged is not None
        )
        assert figures.acknowledged_per_s == pytest.approx(per_s)
        back = [record.rollback_ms for record in good if record.rollback_ms is not None]
        if back:
            assert figures.rollback_ms is not None
            found = figures.rollback_ms
            expected = (min(back), statistics.median(back), max(back))
            assert (found.least, found.median, found.most) == pytest.approx(expected)
        else:
            assert figures.rollback_ms is None


def test_load_figures_are_listed_by_cell_and_name(tmp_path: Path) -> None:
    odd = 'it\'s "named" so'
    own = [{odd: 1.0, "iops": 10.0}, {"iops": 30.0}, {"iops": 1e300}, {"iops": 20.0}, {}]
    intact = changed(RECORDS[0], verdict=Verdict.INTACT)
    records = [
        changed(intact, trial=f"{intact.cell}.{number:04}-{number:016x}", figures=figures)
        for number, figures in enumerate(own)
    ]
    failed = changed(records[0], verdict=Verdict.INCONCLUSIVE, figures={"iops": 9000.0})
    failed = structs.replace(failed, trial=f"{intact.cell}.0009-{9:016x}")
    with Store.open([write_run(tmp_path / "run", [*records, failed])]) as store:
        assert store.load_figures() == (
            LoadFigure(cell=intact.cell, name="iops", median=20.0, trials=3),
            LoadFigure(cell=intact.cell, name=odd, median=1.0, trials=1),
        )


@pytest.mark.parametrize("bins_per_decade", [1, 6])
def test_every_rollback_is_in_the_one_bin_it_belongs_to(
    bins_per_decade: int, tmp_path: Path
) -> None:
    rolled = [record for record in RECORDS if record.verdict is Verdict.ROLLED_BACK]
    edges = [0.0, 0.5, 1.0, 10.0, 100.0, 1000.0, 10.0 ** (3 + 1 / 6), 14_999.9]
    records = [changed(record, rollback_ms=ms) for record, ms in zip(rolled, edges, strict=False)]
    records += rolled[len(edges) :]
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        bins = store.rollbacks(bins_per_decade=bins_per_decade)
    expected: Counter[tuple[str, float]] = Counter()
    for record in records:
        assert record.rollback_ms is not None
        (own,) = [
            each
            for each in bins
            if each.cell == record.cell and each.low_ms <= record.rollback_ms < each.high_ms
        ]
        expected[own.cell, own.low_ms] += 1
        assert own.low_ms == 0 or own.high_ms / own.low_ms == pytest.approx(
            10 ** (1 / bins_per_decade)
        )
    assert {(rollback.cell, rollback.low_ms): rollback.trials for rollback in bins} == expected


def test_cases_are_the_worst_first_and_those_that_broke_their_guarantee_before_all(
    tmp_path: Path,
) -> None:
    by_guarantee = {
        guarantee: next(
            record
            for record in RECORDS
            if record.guarantee == guarantee and record.verdict is not Verdict.INCONCLUSIVE
        )
        for guarantee in (Guarantee.SAFE, Guarantee.ROLLS_BACK, Guarantee.LOSES)
    }

    def trial(number: int, guarantee: Guarantee, verdict: Verdict, **other: Any) -> TrialRecord:
        own = by_guarantee[guarantee]
        name = f"{own.cell}.{number:04d}-{number:016x}"
        first = {"rollback_ms": None, "lost": 0, "acknowledged": 100}
        return changed(own, trial=name, verdict=verdict, **(first | other))

    expected = [
        trial(1, Guarantee.ROLLS_BACK, Verdict.CORRUPTED, lost=1),
        trial(
            2, Guarantee.ROLLS_BACK, Verdict.ROLLED_BACK, lost=9, rollback_ms=ROLLBACK_MS_MAX + 1.0
        ),
        trial(3, Guarantee.SAFE, Verdict.REPAIRED),
        trial(4, Guarantee.LOSES, Verdict.UNREPAIRABLE, lost=100),
        trial(5, Guarantee.LOSES, Verdict.CORRUPTED, lost=90),
        trial(6, Guarantee.LOSES, Verdict.CORRUPTED, lost=20),
        trial(7, Guarantee.ROLLS_BACK, Verdict.ROLLED_BACK, lost=3, rollback_ms=900.0),
    ]
    others = [
        trial(8, Guarantee.LOSES, Verdict.CORRUPTED, lost=10),  # the fourth of its cell
        trial(9, Guarantee.ROLLS_BACK, Verdict.ROLLED_BACK, lost=80, rollback_ms=800.0),
        trial(10, Guarantee.SAFE, Verdict.INTACT),
        trial(11, Guarantee.SAFE, Verdict.INCONCLUSIVE, lost=5, rollback_ms=99_999.0),
    ]
    shuffled = [*expected, *others]
    random.Random(5).shuffle(shuffled)
    folder = write_run(tmp_path / "run", shuffled)
    (folder / "trials" / expected[0].trial).mkdir(parents=True)
    with Store.open([folder]) as store:
        cases = store.cases(most=20)
        assert [case.record for case in cases] == expected
        assert [case.broke_guarantee for case in cases] == [True] * 3 + [False] * 4
        assert [case.record for case in store.cases(most=2)] == expected[:2]
        assert sum(figures.broken for figures in cell_figures(store.tallies())) == 3
    assert cases[0].evidence == folder / "trials" / expected[0].trial
    assert cases[1].evidence is None


@pytest.mark.parametrize("name", ["..", ".", "../../secret", "/etc", "a\0b", "x" * 900])
def test_a_trials_name_leads_to_no_folder_outside_the_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    bad = next(record for record in RECORDS if record.verdict is Verdict.CORRUPTED)
    folder = write_run(tmp_path / "run", [structs.replace(bad, trial=name)])
    (folder / "trials").mkdir()
    with Store.open([folder]) as store:
        (case,) = store.cases(most=1)
        assert (case.record.trial, case.evidence) == (name, None)


trial_lines = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.sampled_from(list(Verdict))), max_size=12
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=trial_lines)
def test_of_one_trials_records_a_breach_counts_else_the_first_conclusive_one(
    drawn: Sequence[tuple[int, int, Verdict]], tmp_path: Path
) -> None:
    """Against the slow way: one record after the other, in the order of runs and lines."""
    root = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    written = [
        [changed(RECORDS[trial], verdict=verdict) for run, trial, verdict in drawn if run == number]
        for number in (0, 1)
    ]
    runs = [
        write_run(root / f"run{number}", records, begun=f"2026-11-2{number}T00:00:00+0000")
        for number, records in enumerate(written)
    ]
    ranks: dict[str, tuple[int, str]] = {}
    for record in (*written[0], *written[1]):
        is_breach = record.breaks(guarantee_of(Cell.parse(record.cell)))
        rank = 3 * is_breach + (record.verdict is not Verdict.INCONCLUSIVE)
        if record.trial not in ranks or rank > ranks[record.trial][0]:
            ranks[record.trial] = rank, record.verdict
    expected = {trial: verdict for trial, (_, verdict) in ranks.items()}
    # the older run is the earlier one, in whichever order they are named
    with Store.open([runs[1], runs[0]]) as store:
        assert counted(store) == expected
        assert store.trials == len(expected)
        dropped = sum(map(len, written)) - len(expected)
        assert len(store.notes) == (dropped > 0)
        if dropped:
            assert store.notes[0].startswith(f"{dropped:,} record")


def test_duplicates_are_reported_with_those_of_another_verdict(tmp_path: Path) -> None:
    other, silent, same = (
        changed(each, verdict=Verdict.INTACT, lost=0, rollback_ms=None) for each in RECORDS[:3]
    )
    first = write_run(
        tmp_path / "first",
        [
            changed(other, verdict=Verdict.CORRUPTED),
            changed(silent, verdict=Verdict.INCONCLUSIVE),
            same,
        ],
    )
    with Store.open([first, write_run(tmp_path / "second", [other, silent, same])]) as store:
        assert store.trials == 3
        assert store.notes == (
            "3 records are of trials with several records, and each trial counts once; 1 of "
            "them was inconclusive, and 1 had another verdict than the record that counts",
        )


def test_a_run_named_twice_and_by_its_link_is_one(run: Path, tmp_path: Path) -> None:
    latest = tmp_path / "latest"
    latest.symlink_to(run)
    for named in ([run, latest, run / TRIALS_FILE, run.parent], [latest]):
        with Store.open(named) as store:
            assert (store.trials, store.notes, len(store.runs)) == (len(RECORDS), (), 1)


def test_intervals_of_a_cell_allow_for_a_run_that_stopped_when_it_knew_enough(
    tmp_path: Path,
) -> None:
    first, second = (list(make_records(60, cells=CELLS[:n], seed=n)) for n in (1, 2))
    fixed = write_run(tmp_path / "fixed", second)
    until = write_run(tmp_path / "until", first, options={"until": "upper<0.01"})
    with Store.open([fixed, until]) as store:
        assert [run.document.is_sequential for run in store.runs] == [False, True]
        for figures in cell_figures(store.tallies()):
            count = sequential_rate_of if figures.cell == CELLS[0].name else rate_of
            assert figures.loss == count(figures.loss.events, figures.conclusive)
            assert figures.corruption == count(figures.corruption.events, figures.conclusive)


def test_a_folder_of_artifacts_is_all_its_runs(tmp_path: Path) -> None:
    runs = [
        write_run(
            tmp_path / f"shard-{n}" / f"20261121-0000{n}", make_records(4, cells=CELLS, seed=n)
        )
        for n in (3, 1, 2)
    ]
    empty = write_run(tmp_path / "shard-4" / "empty", ())
    (empty / TRIALS_FILE).unlink()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [run.folder for run in find_runs(tmp_path)] == sorted([*runs, empty])
    with Store.open([tmp_path]) as store:
        assert store.trials == 12
        assert store.notes == ("empty has no trials",)
    with pytest.raises(HarnessError, match="holds 4 runs"):
        find_run(tmp_path)


def test_a_folder_without_a_run_is_refused_with_the_next_command(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "run", ())
    (empty / TRIALS_FILE).unlink()
    for path in (tmp_path / "gone", tmp_path, empty, empty / "run.json"):
        with pytest.raises(HarnessError) as refused:
            find_runs(path)
        assert refused.value.hint
    with pytest.raises(HarnessError, match="no run was named"):
        Store.open([])


@pytest.mark.parametrize(
    "document",
    [b"", b"{", b"[]", b"\xff", b'{"seed": NaN}', b"[" * 9999, None],
)
def test_without_a_run_json_the_trials_count_and_a_note_reports_it(
    document: bytes | None, run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    lines = (run / TRIALS_FILE).read_bytes().splitlines(keepends=True)[:20]
    (folder / TRIALS_FILE).write_bytes(b"".join(lines))
    if document is not None:
        (folder / "run.json").write_bytes(document)
    with Store.open([folder]) as store:
        assert store.trials == len(lines)
        assert not store.runs[0].is_documented
        assert store.notes[0].startswith("bare has no readable run.json")


def test_a_run_json_with_wrong_types_is_not_believed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", RECORDS[:1])
    document = {
        "run": 7,
        "seed": True,
        "begun": ["now"],
        "options": "all",
        "merged": [3],
        "notes": ["x" * 9999],
    }
    (folder / "run.json").write_text(json.dumps(document))
    (info,) = find_runs(folder)
    read = info.document
    assert (info.name, read.seed, read.begun, read.options) == ("run", None, "", {})
    with Store.open([folder]) as store:
        (note,) = store.notes
        assert len(note) < 1000


def test_two_reports_at_once_see_each_its_own_records(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, RECORDS[:count]) for name, count in (("a", 3), ("b", 5))]
    with Store.open(runs[:1]) as one, Store.open(runs[1:]) as other:
        assert [len(counted(store)) for store in (one, other)] == [3, 5]
    with Store.open(runs) as both:
        assert len(counted(both)) == 5


def test_an_inconclusive_trial_is_in_no_figure_but_its_count(tmp_path: Path) -> None:
    good = next(record for record in RECORDS if record.verdict is Verdict.ROLLED_BACK)
    silent = changed(
        good, trial=good.trial[::-1], verdict=Verdict.INCONCLUSIVE, rollback_ms=1.0, acknowledged=0
    )
    with Store.open([write_run(tmp_path / "one", [good])]) as store:
        (alone,), bins = cell_figures(store.tallies()), store.rollbacks()
    with Store.open([write_run(tmp_path / "two", [good, silent])]) as store:
        (both,) = cell_figures(store.tallies())
        assert store.rollbacks() == bins
    assert both.verdicts == {**alone.verdicts, Verdict.INCONCLUSIVE: 1}
    assert replace(both, trials=1, verdicts=alone.verdicts) == alone

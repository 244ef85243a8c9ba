"""Replays and reruns beside the original trials: marked everywhere, and counted in no rate."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.examples import examples
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import UnreadableLineError, read_line, read_records
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.store import Store, write_merged

CELLS = cells_of(Matrix.QUICK)
RECORDS = tuple(make_records(120, cells=CELLS, seed=5))
LOST = next(record for record in RECORDS if record.verdict is Verdict.CORRUPTED)
REPLAYED = replace(LOST, origin=Origin.REPLAY, repeats=LOST.trial)
"""By the original's own name, which is the harder case: a replay may have one of its own."""


def again(origin: Origin, **other: Any) -> TrialRecord:
    return changed(REPLAYED, origin=origin, trial=f"{LOST.trial}.{origin}", **other)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_run(tmp_path / "original", RECORDS, begun="2026-11-20T00:00:00+0000")


def replay_run(root: Path, name: str, *records: TrialRecord) -> Path:
    """Newer than the original: a later record would count rather than an earlier one."""
    return write_run(root / name, records, begun="2026-11-21T00:00:00+0000", options={"jobs": 1})


def identities(store: Store) -> list[tuple[str, str, str]]:
    return sorted(
        store.sql.execute(
            "SELECT origin, origin_run, verdict FROM trials WHERE repeats = ? OR trial = ?",
            [LOST.trial, LOST.trial],
        ).fetchall()
    )


@pytest.mark.parametrize("repeat", [REPLAYED, again(Origin.REPLAY), again(Origin.RERUN)])
def test_a_repeated_trial_is_a_record_of_its_own_and_changes_no_figure(
    repeat: TrialRecord, original: Path, tmp_path: Path
) -> None:
    better = changed(repeat, verdict=Verdict.INTACT, lost=0, rollback_ms=99.0)
    with Store.open([original]) as store:
        trials, figures, bins = store.trials, cell_figures(store.tallies()), store.rollbacks()
        cases = store.cases(most=50)
    with Store.open([original, replay_run(tmp_path, "later", better)]) as store:
        assert (store.trials, store.rollbacks()) == (trials, bins)
        assert cell_figures(store.tallies()) == figures
        assert store.cases(most=50) == cases
        assert identities(store) == [
            ("live", "", "corrupted"), (str(repeat.origin), "later", "intact"),
        ]  # fmt: skip
        (note,) = store.notes
        assert note == (
            f"1 {repeat.origin} left out of all rates and cases: 0 ended as the trial that was "
            f"repeated, 1 otherwise ({repeat.trial}: intact, was corrupted)"
        )


def test_replays_of_one_trial_in_two_runs_are_two_and_one_that_is_there_twice_is_one(
    original: Path, tmp_path: Path
) -> None:
    runs = [original, *(replay_run(tmp_path, name, REPLAYED) for name in ("one", "two"))]
    with Store.open(runs) as store:
        assert [found[1] for found in identities(store)] == ["", "one", "two"]
        assert store.notes == (
            "2 replays left out of all rates and cases: 2 ended as the trial that was repeated",
        )
        merged = write_merged(store, tmp_path / "merged")
        figures = cell_figures(store.tallies())
    copy = replay_run(tmp_path / "copy", "two", REPLAYED)
    with Store.open([merged, copy, *runs]) as store:
        assert [found[1] for found in identities(store)] == ["", "one", "two"]
        again = cell_figures(store.tallies())
    # a merged run of several seeds is taken for several runs: its intervals are the wider ones
    for one, other in zip(figures, again, strict=True):
        assert one.verdicts == other.verdicts
        assert (one.harm.events, one.harm.trials) == (other.harm.events, other.harm.trials)
        assert other.harm.low <= one.harm.low <= one.harm.high <= other.harm.high


def test_a_merged_run_keeps_them_apart_and_says_each_thing_once(
    original: Path, tmp_path: Path
) -> None:
    worse = changed(REPLAYED, verdict=Verdict.POOL_LOST)
    runs = [original, replay_run(tmp_path, "one", REPLAYED), replay_run(tmp_path, "two", worse)]
    with Store.open(runs) as store:
        merged = write_merged(store, tmp_path / "merged")
        found, notes = identities(store), store.notes
    with Store.open([merged]) as store:
        assert (identities(store), store.notes) == (found, notes)
        twice = write_merged(store, tmp_path / "twice")
    assert (twice / TRIALS_FILE).read_bytes() == (merged / TRIALS_FILE).read_bytes()
    records = read_records(merged / TRIALS_FILE)
    of_lost = {
        record.origin_run: record for record in records.records if record.trial == LOST.trial
    }
    assert of_lost == {
        "": LOST, "one": replace(REPLAYED, origin_run="one"), "two": replace(worse, origin_run="two"),
    }  # fmt: skip
    repeated = [record for record in records.records if record not in records.live]
    assert repeated == [of_lost["one"], of_lost["two"]]
    live = set((original / TRIALS_FILE).read_bytes().splitlines())
    assert live < set((merged / TRIALS_FILE).read_bytes().splitlines())


def test_within_one_file_a_replay_does_not_stand_for_the_original(tmp_path: Path) -> None:
    better = changed(REPLAYED, verdict=Verdict.INTACT, lost=0)
    file = write_run(tmp_path / "run", [LOST, better]) / TRIALS_FILE
    assert read_records(file).records == (LOST, better)
    assert read_records(file).live == (LOST,)


def test_exports_say_where_a_record_comes_from(original: Path, tmp_path: Path) -> None:
    run = replay_run(tmp_path, "later", again(Origin.REPLAY))
    for path in (tmp_path / "alone", tmp_path / "both"):
        path.mkdir()
    with Store.open([original]) as alone, Store.open([original, run]) as both:
        for form in EXPORTS.values():
            form.write(alone, tmp_path / "alone")
            form.write(both, tmp_path / "both")
    with (tmp_path / "both" / "trials.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(RECORDS) + 1
    (row,) = [row for row in rows if row["origin"] != "live"]
    assert (row["origin"], row["repeats"], row["origin_run"]) == ("replay", LOST.trial, "later")
    assert all(
        (row["repeats"], row["origin_run"]) == ("", "") for row in rows if row["origin"] == "live"
    )
    found = duckdb.execute(
        f"SELECT origin, count(*) FROM '{tmp_path / 'both' / 'trials.parquet'}' GROUP BY ALL ORDER BY 1"
    ).fetchall()
    assert found == [("live", len(RECORDS)), ("replay", 1)]
    for name in ("cells.csv",):
        assert (tmp_path / "both" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    reports = [json.loads((tmp_path / at / "report.json").read_bytes()) for at in ("alone", "both")]
    for key in ("trials", "cells"):
        assert reports[0][key] == reports[1][key]


def test_a_record_that_does_not_say_its_origin_is_live_and_an_unknown_one_is_no_record() -> None:
    data = LOST.as_json()
    del data["origin"]
    assert read_line(json.dumps(data).encode()).record == LOST == TrialRecord.from_json(data)
    unknown: list[Any] = ["dream", 3, [], None]
    for origin in unknown:
        spoilt = data | {"origin": origin}
        with pytest.raises(UnreadableLineError, match="origin"):
            read_line(json.dumps(spoilt).encode())
        with pytest.raises(ValueError, match="origin"):
            TrialRecord.from_json(spoilt)


def test_a_repeat_whose_first_trial_is_elsewhere_says_so(tmp_path: Path) -> None:
    run = replay_run(tmp_path, "later", again(Origin.REPLAY), again(Origin.RERUN))
    with Store.open([run]) as store:
        assert store.trials == 0
        assert cell_figures(store.tallies()) == ()
        assert store.notes == (
            "1 replay and 1 rerun left out of all rates and cases: 0 ended as the trial that was "
            "repeated, of 2 that trial is not here",
        )


def test_a_replay_is_one_though_its_trial_is_live_on_two_versions(tmp_path: Path) -> None:
    """It is held against the trial that it repeated."""
    older = changed(LOST, zfs="2.1.11", verdict=Verdict.INTACT)
    newer = replace(LOST, zfs="2.3.9")
    first = write_run(tmp_path / "first", [older, newer], begun="2026-11-20T00:00:00+0000")
    repeat = changed(again(Origin.REPLAY), zfs="2.3.9", verdict=newer.verdict)
    with Store.open([first, replay_run(tmp_path, "later", repeat)]) as store:
        assert store.trials == 2
        [note] = [note for note in store.notes if "left out" in note]
    assert note == (
        "1 replay left out of all rates and cases: 1 ended as the trial that was repeated"
    )


written = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(Origin),
        st.sampled_from(Verdict),
        st.sampled_from(("2.3.9", "2.4.4")),
    ),
    max_size=12,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=written)
def test_one_rule_says_which_record_counts_in_a_file_and_in_a_report(
    drawn: Sequence[tuple[int, Origin, Verdict, str]], tmp_path: Path
) -> None:
    records = [
        changed(
            RECORDS[trial], origin=origin, verdict=verdict, zfs=zfs,
            repeats="" if origin == Origin.LIVE else RECORDS[trial].trial,
        )
        for trial, origin, verdict, zfs in drawn
    ]  # fmt: skip
    folder = write_run(tmp_path / f"run{len(list(tmp_path.iterdir()))}", records)
    read = read_records(folder / TRIALS_FILE)
    with Store.open([folder]) as store:
        rows = store.sql.execute("SELECT trial, origin, verdict, zfs FROM trials").fetchall()
        assert store.trials == len(read.live)
    expected = [
        (record.trial, record.origin, record.verdict, record.zfs) for record in read.records
    ]
    assert sorted(rows) == sorted(expected)

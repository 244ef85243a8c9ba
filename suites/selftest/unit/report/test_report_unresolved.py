"""Trials that no rate counts, or not once: inconclusive ones, empty cuts, tries, void ones, repeats."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.examples import examples
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import intact_records, make_records, page_of, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument, Phase
from torture.facts.stats.rates import in_words, printed_bounds, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import UnreadableLineError, read_line, read_records
from torture.report.exports import EXPORTS
from torture.report.figures.answer import Group, Standing, answer, standing_of
from torture.report.figures.cell_figures import cell_figures, rates_either_way
from torture.report.page.render import render_page
from torture.report.reading.store import Store, write_merged

SAFE = "iscsi-always-noslog-btrfs-nasonly"
OTHER = "iscsi-always-plp-btrfs-nasonly"
WITH_PHASE = CutDocument(phase=Phase.IDLE)
EMPTY = replace(WITH_PHASE, audit=AuditDocument(under_way=0, acknowledged_lately=0))
EITHER_WAY = (
    f"10 inconclusive: as safe {in_words(rate_of(0, 40))}, as lost {in_words(rate_of(10, 40))}"
)
CAMPAIGNS = 5_000


def ended(
    name: str = SAFE, *, intact: int, unresolved: int = 0, empty: int = 0
) -> list[TrialRecord]:
    ends = [
        *[(Verdict.INTACT, WITH_PHASE)] * intact,
        *[(Verdict.INCONCLUSIVE, WITH_PHASE)] * unresolved,
        *[(Verdict.INCONCLUSIVE, EMPTY)] * empty,
    ]
    made = make_records(len(ends), cells=[Cell.parse(name)], seed=7)
    return [
        changed(record, verdict=verdict, cut=cut, lost=0, error=None)
        for record, (verdict, cut) in zip(made, ends, strict=True)
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", ended(intact=30, unresolved=10, empty=5))


def groups_of(tmp_path: Path, records: Sequence[TrialRecord]) -> tuple[Group, ...]:
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        return answer(cell_figures(store.tallies()))


def test_the_answer_says_both_bounds_and_does_not_say_safe(tmp_path: Path) -> None:
    [group] = groups_of(tmp_path, ended(intact=30, unresolved=10, empty=5))
    assert group.sentence == (
        "theory says safe: 0 of 30 cuts lost or damaged data, at most 12 % at 95 %; "
        f"{EITHER_WAY}; 1 configuration left open by inconclusive cuts"
    )


def test_an_empty_cut_could_have_lost_nothing(tmp_path: Path) -> None:
    [group] = groups_of(tmp_path, ended(intact=30, empty=50))
    assert group.sentence == (
        "theory says safe: 0 of 30 cuts lost or damaged data, at most 12 % at 95 %"
    )
    assert [standing_of(figures) for figures in group.cells] == [Standing.SAFE]


@pytest.mark.parametrize("intact", [30, 0])
def test_the_audits_findings_in_an_inconclusive_trial_are_kept(tmp_path: Path, intact: int) -> None:
    """It must hold in every cell, whatever became of the check."""
    accused = replace(WITH_PHASE, audit=AuditDocument(broken=2, under_way=1))
    records = [
        replace(record, cut=accused) if record.verdict is Verdict.INCONCLUSIVE else record
        for record in ended(intact=intact, unresolved=3)
    ]
    [group] = groups_of(tmp_path, records)
    assert [(figures.broken, standing_of(figures)) for figures in group.cells] == [
        (3, Standing.WORSE)
    ]
    assert group.sentence.endswith("1 configuration worse than predicted")
    page = unescape(page_of(tmp_path / "run"))
    assert "<b>3 trials were worse than theory guarantees</b>" in page


def test_a_run_of_empty_cuts_alone_raises_no_alarm(tmp_path: Path) -> None:
    [group] = groups_of(tmp_path, ended(intact=0, empty=9))
    assert group.sentence == "theory says safe: no cut of 1 configuration was conclusive"


def test_the_bound_on_each_cell_counts_its_own_unresolved_trials(tmp_path: Path) -> None:
    [group] = groups_of(tmp_path, [*ended(intact=300), *ended(OTHER, intact=30, unresolved=3)])
    assert group.worst_bound == rate_of(0, 30, confidence=0.975).high
    assert group.worst_bound_if_lost == rate_of(3, 33, confidence=0.975).high
    assert "with inconclusive as lost" in group.sentence


@pytest.mark.parametrize(("place", "rates"), [("page", 4), ("markdown", 4)])
def test_every_rate_for_people_has_both(run: Path, tmp_path: Path, place: str, rates: int) -> None:
    with Store.open([run]) as store:
        if place == "page":
            text = render_page(store)
        else:
            (path,) = EXPORTS[place].write(store, tmp_path)
            text = path.read_text("utf-8")
    assert unescape(text).count(EITHER_WAY) == rates
    assert f"{Standing.SAFE}<" not in text.replace("</span>safe, as predicted <", "")
    assert f"| {Standing.SAFE} |" not in text


def test_programs_have_both(run: Path, tmp_path: Path) -> None:
    with Store.open([run]) as store:
        (path,) = EXPORTS["json"].write(store, tmp_path)
    [cell] = json.loads(path.read_text("utf-8"))["cells"]
    assert (cell["trials"], cell["conclusive"], cell["empty"]) == (45, 30, 5)
    for name in ("loss", "corruption"):
        counted = [cell[f"{name}_counted_{way}"] for way in ("safe", "lost")]
        assert [(rate["events"], rate["trials"]) for rate in counted] == [(0, 40), (10, 40)]
        assert counted[1]["high"] == rate_of(10, 40).high


def test_the_interval_of_a_run_that_stopped_by_itself_stays_of_its_kind() -> None:
    assert rates_either_way(sequential_rate_of(1, 20), 4) == (
        sequential_rate_of(1, 24),
        sequential_rate_of(5, 24),
    )


@pytest.mark.parametrize("lost_share", [0.0, 0.02, 0.1, 0.4, 0.9])
@pytest.mark.parametrize("silent_share", [0.0, 0.5, 1.0])
def test_from_the_lower_to_the_upper_bound_the_truth_is_covered_if_inconclusive_trials_hide_any_loss(
    lost_share: float, silent_share: float
) -> None:
    """Trials that lost something are inconclusive in a share of their own; of others one in twenty is."""
    draw = np.random.default_rng(11)
    lost = draw.binomial(40, lost_share, size=CAMPAIGNS)
    hidden = draw.binomial(lost, silent_share)
    unresolved = hidden + draw.binomial(40 - lost, 0.05)
    bounds = {}
    for events, silent in {*zip((lost - hidden).tolist(), unresolved.tolist(), strict=True)}:
        safe, worst = rates_either_way(rate_of(events, 40 - silent), silent)
        bounds[events, silent] = printed_bounds(safe)[0], printed_bounds(worst)[1]
    held = [
        low <= lost_share <= high
        for low, high in (
            bounds[seen] for seen in zip((lost - hidden).tolist(), unresolved.tolist(), strict=True)
        )
    ]
    assert np.mean(held) >= 0.95


# Tries of a trial are counted, marked, and a trial is void only by a list with reasons.

LOSES = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")
RECORDS = intact_records(6, cells=[LOSES])
LOST = changed(RECORDS[0], verdict=Verdict.CORRUPTED, lost=4)


def losses(store: Store) -> tuple[int, int]:
    [figures] = cell_figures(store.tallies())
    return figures.loss.events, figures.loss.trials


def void(run: Path, **reasons: str) -> Path:
    file = run / "run.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"void": reasons}))
    return run


def again(record: TrialRecord, **changes: object) -> TrialRecord:
    """Another try, which took another time."""
    return changed(replace(record, timings={"load": 4321}), **changes)


def test_tries_are_counted_and_copies_are_not_tries(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [LOST, *RECORDS[1:]], begun="2026-11-20T00:00:00+0000")
    other = write_run(
        tmp_path / "b",
        [again(RECORDS[0]), again(RECORDS[0], verdict=Verdict.INCONCLUSIVE), RECORDS[1]],
        begun="2026-11-21T00:00:00+0000",
    )
    with Store.open([other, first]) as store:
        assert losses(store) == (1, 6)
        [note] = store.notes
    assert "3 records are of trials with several records" in note
    assert "1 trial was made several times, with 2 tries in all" in note
    with Store.open([first, write_run(tmp_path / "copy", [LOST])]) as store:
        assert "several times" not in store.notes[0]


def test_a_void_trial_is_in_no_rate_and_its_reason_is_a_note(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [LOST, *RECORDS[1:]])
    redrawn = write_run(tmp_path / "b", [again(RECORDS[0])])
    void(run, **{LOST.trial: "the host's disk was full"})
    with Store.open([run, redrawn]) as store:
        assert losses(store) == (0, 5), "a second try of a void trial counts no more"
        assert store.notes == (
            f"{LOST.trial} is void, and in no rate: the host's disk was full (it was corrupted and "
            "intact)",
        )
        merged = write_merged(store, tmp_path / "merged")
    with Store.open([merged]) as store:
        assert losses(store) == (0, 5)
        assert "is void, and in no rate: the host's disk was full" in " ".join(store.notes)
        assert len(store.notes) == 1, "the sentence is the merged run's own"
    # merged runs of older suites have no line of a void trial
    lines = (merged / TRIALS_FILE).read_text().splitlines(keepends=True)
    others = [line for line in lines if LOST.trial not in line]
    assert len(lines) - len(others) == 2
    (merged / TRIALS_FILE).write_text("".join(others))
    with Store.open([merged, redrawn]) as store:
        assert losses(store) == (0, 5), "a rerun would stand for the void loss"


def test_void_trials_stand_beside_a_wrong_field_of_their_run(tmp_path: Path) -> None:
    run = void(write_run(tmp_path / "a", [LOST, *RECORDS[1:]]), **{LOST.trial: "a reason"})
    file = run / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"seed": "three"}))
    with Store.open([run]) as store:
        assert losses(store) == (0, 5)


def test_without_a_reason_a_trial_is_not_void(tmp_path: Path) -> None:
    run = void(write_run(tmp_path / "a", [LOST, *RECORDS[1:]]), **{LOST.trial: " "})
    with Store.open([run]) as store:
        assert losses(store) == (1, 6)


def test_a_void_trial_that_the_run_does_not_have_is_named(tmp_path: Path) -> None:
    run = void(write_run(tmp_path / "a", RECORDS), typo="a reason")
    with Store.open([run]) as store:
        assert losses(store) == (0, 6)
        assert store.notes == ("a voids typo, and has no record of it",)


def test_another_version_of_zfs_has_a_trial_of_its_own(tmp_path: Path) -> None:
    old, new = (replace(LOST, zfs=zfs) for zfs in ("2.1.11", "2.3.9"))
    first = void(write_run(tmp_path / "a", [old]), **{LOST.trial: "a reason"})
    with Store.open([first, write_run(tmp_path / "b", [new])]) as store:
        assert losses(store) == (1, 1)


# Trials that a report marks: those without a manifest, and those cut at the worst moment.

CELL = cells_of(Matrix.QUICK)[:1]


def test_trials_that_are_older_than_manifests_are_counted(tmp_path: Path) -> None:
    first, *rest = intact_records(5, cells=CELL)
    old = replace(first, has_manifest=False)
    with Store.open([write_run(tmp_path / "run", [old, *rest])]) as store:
        [note] = store.notes
    assert note.startswith("1 of 5 conclusive trials was judged without a manifest")


def test_a_cut_at_the_moment_of_a_finding_is_in_no_rate(tmp_path: Path) -> None:
    """It was chosen as the worst there was: counted, it would say more of the choice than of the cell."""
    first, *rest = intact_records(5, cells=CELL)
    confirmed = Confirmation(finding="acknowledged-is-durable", marks=3)
    chosen = changed(
        first, verdict=Verdict.CORRUPTED, lost=2, cut=replace(first.cut, confirmed=confirmed)
    )
    records = [chosen, *rest]
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        [figures] = cell_figures(store.tallies())
        [note] = store.notes
    assert (figures.trials, figures.conclusive, figures.confirmations) == (5, 4, 1)
    assert figures.checked == sum(record.acknowledged for record in rest)
    assert (figures.loss.events, figures.loss.trials) == (0, 4)
    assert (figures.corruption.events, figures.corruption.trials) == (0, 4)
    assert figures.broken == 1
    assert figures.verdicts[Verdict.CORRUPTED] == 1
    assert note.startswith("1 trial was cut at the moment of a finding")


# Replays and reruns beside the original trials: marked everywhere, and counted in no rate.

CELLS = cells_of(Matrix.QUICK)
ORIGINALS = tuple(make_records(120, cells=CELLS, seed=5))
DAMAGED = next(record for record in ORIGINALS if record.verdict is Verdict.CORRUPTED)
REPLAYED = replace(DAMAGED, origin=Origin.REPLAY, repeats=DAMAGED.trial)
"""By the original's own name, which is the harder case: a replay may have one of its own."""


def repeated(origin: Origin, **other: Any) -> TrialRecord:
    return changed(REPLAYED, origin=origin, trial=f"{DAMAGED.trial}.{origin}", **other)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_run(tmp_path / "original", ORIGINALS, begun="2026-11-20T00:00:00+0000")


def replay_run(root: Path, name: str, *records: TrialRecord) -> Path:
    """Newer than the original: a later record would count rather than an earlier one."""
    return write_run(root / name, records, begun="2026-11-21T00:00:00+0000", options={"jobs": 1})


def identities(store: Store) -> list[tuple[str, str, str]]:
    return sorted(
        store.sql.execute(
            "SELECT origin, origin_run, verdict FROM trials WHERE repeats = ? OR trial = ?",
            [DAMAGED.trial, DAMAGED.trial],
        ).fetchall()
    )


@pytest.mark.parametrize("repeat", [REPLAYED, repeated(Origin.REPLAY), repeated(Origin.RERUN)])
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
        repeated = cell_figures(store.tallies())
    # a merged run of several seeds is taken for several runs: its intervals are the wider ones
    for one, other in zip(figures, repeated, strict=True):
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
        record.origin_run: record for record in records.records if record.trial == DAMAGED.trial
    }
    assert of_lost == {
        "": DAMAGED, "one": replace(REPLAYED, origin_run="one"), "two": replace(worse, origin_run="two"),
    }  # fmt: skip
    repeated = [record for record in records.records if record not in records.live]
    assert repeated == [of_lost["one"], of_lost["two"]]
    live = set((original / TRIALS_FILE).read_bytes().splitlines())
    assert live < set((merged / TRIALS_FILE).read_bytes().splitlines())


def test_within_one_file_a_replay_does_not_stand_for_the_original(tmp_path: Path) -> None:
    better = changed(REPLAYED, verdict=Verdict.INTACT, lost=0)
    file = write_run(tmp_path / "run", [DAMAGED, better]) / TRIALS_FILE
    assert read_records(file).records == (DAMAGED, better)
    assert read_records(file).live == (DAMAGED,)


def test_exports_say_where_a_record_comes_from(original: Path, tmp_path: Path) -> None:
    run = replay_run(tmp_path, "later", repeated(Origin.REPLAY))
    for path in (tmp_path / "alone", tmp_path / "both"):
        path.mkdir()
    with Store.open([original]) as alone, Store.open([original, run]) as both:
        for form in EXPORTS.values():
            form.write(alone, tmp_path / "alone")
            form.write(both, tmp_path / "both")
    with (tmp_path / "both" / "trials.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ORIGINALS) + 1
    (row,) = [row for row in rows if row["origin"] != "live"]
    assert (row["origin"], row["repeats"], row["origin_run"]) == ("replay", DAMAGED.trial, "later")
    assert all(
        (row["repeats"], row["origin_run"]) == ("", "") for row in rows if row["origin"] == "live"
    )
    found = duckdb.execute(
        f"SELECT origin, count(*) FROM '{tmp_path / 'both' / 'trials.parquet'}' GROUP BY ALL ORDER BY 1"
    ).fetchall()
    assert found == [("live", len(ORIGINALS)), ("replay", 1)]
    cells = {(tmp_path / at / "cells.csv").read_bytes() for at in ("alone", "both")}
    assert len(cells) == 1
    reports = [json.loads((tmp_path / at / "report.json").read_bytes()) for at in ("alone", "both")]
    for key in ("trials", "cells"):
        assert reports[0][key] == reports[1][key]


def test_a_record_that_does_not_say_its_origin_is_live_and_an_unknown_one_is_no_record() -> None:
    data = DAMAGED.as_json()
    del data["origin"]
    assert read_line(json.dumps(data).encode()).record == DAMAGED == TrialRecord.from_json(data)
    unknown: list[Any] = ["dream", 3, [], None]
    for origin in unknown:
        spoilt = data | {"origin": origin}
        with pytest.raises(UnreadableLineError, match="origin"):
            read_line(json.dumps(spoilt).encode())
        with pytest.raises(ValueError, match="origin"):
            TrialRecord.from_json(spoilt)


def test_a_repeat_whose_first_trial_is_elsewhere_says_so(tmp_path: Path) -> None:
    run = replay_run(tmp_path, "later", repeated(Origin.REPLAY), repeated(Origin.RERUN))
    with Store.open([run]) as store:
        assert store.trials == 0
        assert cell_figures(store.tallies()) == ()
        assert store.notes == (
            "1 replay and 1 rerun left out of all rates and cases: 0 ended as the trial that was "
            "repeated, of 2 that trial is not here",
        )


def test_a_replay_is_one_though_its_trial_is_live_on_two_versions(tmp_path: Path) -> None:
    """It is held against the trial that it repeated."""
    older = changed(DAMAGED, zfs="2.1.11", verdict=Verdict.INTACT)
    newer = replace(DAMAGED, zfs="2.3.9")
    first = write_run(tmp_path / "first", [older, newer], begun="2026-11-20T00:00:00+0000")
    repeat = changed(repeated(Origin.REPLAY), zfs="2.3.9", verdict=newer.verdict)
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
            ORIGINALS[trial], origin=origin, verdict=verdict, zfs=zfs,
            repeats="" if origin == Origin.LIVE else ORIGINALS[trial].trial,
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

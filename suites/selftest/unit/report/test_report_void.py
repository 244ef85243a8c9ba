"""Tries of a trial are counted, marked, and a trial is void only by a list with reasons."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import Confirmation
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.run_layout import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.merged import write_merged
from torture.report.reading.store import Store

LOSES = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")
RECORDS = [
    changed(record, verdict=Verdict.INTACT, lost=0, error=None)
    for record in make_records(6, cells=[LOSES], seed=1)
]
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
    _without_its_line(merged, LOST.trial)
    with Store.open([merged, redrawn]) as store:
        assert losses(store) == (0, 5), "a rerun would stand for the void loss"


def _without_its_line(run: Path, trial: str) -> None:
    """Merged runs of older suites have no line of a void trial."""
    file = run / TRIALS_FILE
    lines = file.read_text().splitlines(keepends=True)
    assert sum(trial in line for line in lines) == 2
    file.write_text("".join(line for line in lines if trial not in line))


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


def intact(count: int) -> list[TrialRecord]:
    records = make_records(count, cells=CELL, seed=1)
    return [changed(record, verdict=Verdict.INTACT, lost=0, error=None) for record in records]


def test_trials_that_are_older_than_manifests_are_counted(tmp_path: Path) -> None:
    first, *rest = intact(5)
    old = replace(first, has_manifest=False)
    with Store.open([write_run(tmp_path / "run", [old, *rest])]) as store:
        [note] = store.notes
    assert note.startswith("1 of 5 conclusive trials was judged without a manifest")


def test_a_cut_at_the_moment_of_a_finding_is_in_no_rate(tmp_path: Path) -> None:
    """It was chosen as the worst there was: counted, it would say more of the choice than of the cell."""
    first, *rest = intact(5)
    confirmed = Confirmation(finding="acknowledged-is-durable", marks=3)
    chosen = changed(
        first, verdict=Verdict.CORRUPTED, lost=2, cut=replace(first.cut, confirmed=confirmed)
    )
    records = [chosen, *rest]
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        [figures] = cell_figures(store.tallies())
        [note] = store.notes
    assert (figures.trials, figures.conclusive, figures.confirmations) == (5, 4, 1)
    assert (figures.loss.events, figures.loss.trials) == (0, 4)
    assert (figures.corruption.events, figures.corruption.trials) == (0, 4)
    assert figures.broken == 1
    assert figures.verdicts[Verdict.CORRUPTED] == 1
    assert note.startswith("1 trial was cut at the moment of a finding")

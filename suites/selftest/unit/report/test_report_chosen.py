"""Trials that a report marks: those without a manifest, and those cut at the worst moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import Confirmation
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.store import Store

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

"""The sensitivity of cuts: the stored table, and the shares of runs that it predicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.experiments import FAULTS
from torture.choices.matrix.cells import TRANSPORT, Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.sensitivity import MeasuredFault, Sensitivity, measured_sensitivity
from torture.report.page.render import render_page
from torture.report.reading.store import Store
from torture.trials.plan.draw import moved

HEADING = "What these cuts would have detected"


def fault(detected: int, cuts: int) -> MeasuredFault:
    return MeasuredFault(name="f", words="w", cell="c", detected=detected, cuts=cuts)


def test_the_kept_table_is_of_the_faults_that_there_are() -> None:
    kept = measured_sensitivity()
    assert {measured.words for measured in kept.faults} == {each.words for each in FAULTS.values()}
    assert {measured.cell for measured in kept.faults} == {each.cell for each in FAULTS.values()}
    assert all(0 <= measured.detected <= measured.cuts for measured in kept.faults)
    of_faults = {each.words: (each.bound_to, dict(each.amounts_to)) for each in FAULTS.values()}
    assert of_faults == {
        measured.words: (frozenset(measured.bound_to), measured.amounts_to)
        for measured in kept.faults
    }
    assert kept.versions["OpenZFS"]


def test_faults_on_other_transports_are_possible_there() -> None:
    kept = measured_sensitivity()
    by_words = {each.words: each for each in FAULTS.values()}
    assert kept.on_transports
    for measured in kept.on_transports:
        fault, there = by_words[measured.words], Cell.parse(measured.cell)
        here = Cell.parse(fault.cell).axes
        assert there.axes[TRANSPORT.field] != here[TRANSPORT.field]
        other = {axis: name for axis, name in there.axes.items() if name and name != here[axis]}
        assert moved(fault, other).cell == measured.cell
        assert 0 <= measured.detected <= measured.cuts


def figures_of(tmp_path: Path, *names: str) -> tuple[CellFigures, ...]:
    """Of ten sound cuts of each of these cells."""
    for number, name in enumerate(names):
        made = make_records(10, cells=[Cell.parse(name)], seed=number)
        conclusive = (
            changed(record, verdict=Verdict.INTACT, error=None, lost=0) for record in made
        )
        write_run(tmp_path / name, conclusive)
    with Store.open([tmp_path / name for name in names]) as store:
        return cell_figures(store.tallies())


def test_a_run_shows_the_measurements_on_its_own_transports(tmp_path: Path) -> None:
    own = MeasuredFault(
        name="f", words="w", cell="iscsi-always-noslog-ext4-bothdie", detected=4, cuts=4
    )
    rare = MeasuredFault(
        name="f", words="x", cell="iscsi-always-noslog-ext4-bothdie", detected=4, cuts=4
    )
    there = replace(own, cell="nfs4-always-noslog-files-bothdie", detected=1)
    elsewhere = replace(own, cell="nfs3-always-noslog-files-bothdie", detected=2)
    kept = Sensitivity(versions={}, faults=(own, rare), on_transports=(elsewhere, there))
    cells = figures_of(tmp_path, "nfs4-standard-noslog-files-bothdie")
    assert kept.of(cells) == (own, there, rare)


def test_a_run_sees_a_fault_as_often_as_its_lower_bound_says() -> None:
    low = rate_of(3, 4).low
    assert fault(3, 4).share_of_runs(1) == pytest.approx(low)
    assert fault(3, 4).share_of_runs(10) == pytest.approx(1 - (1 - low) ** 10)
    assert fault(0, 4).share_of_runs(1000) == 0.0
    assert fault(3, 4).share_of_runs(0) == 0.0


def test_the_printed_table_promises_no_more() -> None:
    assert fault(0, 4).in_words(1000) == "at least 0 %"
    assert fault(4, 4).in_words(100) == "more than 99.99 %"
    for cuts in range(1, 60):
        words = fault(2, 4).in_words(cuts)
        percent = float(words.removesuffix(" %").split()[-1])
        assert percent / 100 <= fault(2, 4).share_of_runs(cuts)


def cuts_alike(tmp_path: Path, *names: str) -> dict[str, int]:
    """By fault, how many of ten cuts of each cell it was measured on the like of."""
    cells = figures_of(tmp_path, *names)
    return {each.words: each.cuts_like(cells) for each in measured_sensitivity().faults}


def test_a_rate_measured_over_iscsi_does_not_apply_to_another_transport(tmp_path: Path) -> None:
    alike = cuts_alike(tmp_path, "nfs4-standard-noslog-files-bothdie")
    assert set(alike.values()) == {0}
    assert {each.in_words(0) for each in measured_sensitivity().faults} == {
        "not measured in such cells"
    }


def test_a_filesystem_s_fault_is_looked_for_in_its_own_cuts(tmp_path: Path) -> None:
    alike = cuts_alike(
        tmp_path,
        "iscsi-always-noslog-btrfs-bothdie",
        "iscsi-always-noslog-ext4-bothdie",
        "iscsi-always-noslog-xfs-bothdie",
        "nfs4-standard-noslog-files-bothdie",
    )
    assert alike["LIO's backstore is write back"] == 30
    assert alike["ext4 without barriers"] == 10
    assert alike["the second copy of btrfs's metadata is lost"] == 10
    assert alike["the root's superblocks are wiped"] == 0


def test_a_fault_is_looked_for_where_it_is_one(tmp_path: Path) -> None:
    """That sync=always is silently standard harms a VM that lives on, and none that dies, too."""
    alike = cuts_alike(
        tmp_path, "iscsi-always-noslog-ext4-bothdie", "iscsi-always-noslog-ext4-nasonly"
    )
    assert alike["sync=always is silently standard"] == 10
    assert alike["no transaction group is committed"] == 0, (
        "where theory promises more than it takes"
    )
    assert alike["a disk drops one flush in 20"] == 20


def test_the_page_counts_only_trials_that_are_alike(tmp_path: Path) -> None:
    made = make_records(40, cells=[Cell.parse("nfs4-standard-noslog-files-nasonly")], seed=3)
    with Store.open([write_run(tmp_path / "run", made)]) as store:
        page = render_page(store)
    assert HEADING in page
    assert page.count("<td>not measured in such cells</td>") == len(measured_sensitivity().faults)
    measured = measured_sensitivity().of(
        figures_of(tmp_path / "of", "nfs4-standard-noslog-files-nasonly")
    )
    cells = Counter(fault.cell for fault in measured if fault.cell.startswith("nfs4-"))
    assert cells.total() == page.count("<td>more than 99.99 %</td>") > 1
    assert {cell: page.count(f"<code>{cell}</code>") for cell in cells} == cells


def test_the_page_shows_the_sensitivity_if_a_cell_is_called_safe(tmp_path: Path) -> None:
    made = make_records(40, cells=cells_of(Matrix.QUICK), seed=3)
    with Store.open([write_run(tmp_path / "run", made)]) as store:
        page = render_page(store)
    assert HEADING in page
    assert "a disk drops one flush in 20" in page
    lossy = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
    with Store.open(
        [write_run(tmp_path / "lossy", make_records(9, cells=[lossy], seed=3))]
    ) as store:
        assert HEADING not in render_page(store)

"""The sentence of a cell whose recordings were walked: in words, and in no rate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report.test_report_origins import LOST, RECORDS, replay_run
from suites.selftest.unit.report_records import write_run
from torture.facts.evidence.cut_document import DiskAtCut
from torture.features.walk.documents import WalkDocument
from torture.features.walk.surveys import Walked
from torture.features.walk.tasks import WALKED
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.trials import TrialRecord
from torture.report.figures.answer import (
    Standing,
    answer_in_words,
    fastest_safe,
    standing_of,
    tone_of,
)
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.versus import compare_runs
from torture.report.reading.store import Store


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_run(tmp_path / "original", RECORDS, begun="2026-11-20T00:00:00+0000")


def walked(number: int, *, recovered: int, lost: int, proven: int = 0) -> TrialRecord:
    outcomes = {"intact": recovered + proven - lost, "corrupted": lost}
    return changed(
        LOST,
        origin=WALKED,
        trial=f"walked.{number}.{LOST.trial}",
        walk=WalkDocument(recovered=recovered, proven=proven, outcomes=outcomes),
    )


def test_walked_states_join_the_sentence_and_change_no_rate(original: Path, tmp_path: Path) -> None:
    with Store.open([original]) as store:
        figures = {one.cell: one for one in cell_figures(store.tallies())}
    walks = [walked(1, recovered=150, proven=150, lost=2), walked(2, recovered=100, lost=0)]
    newer = replay_run(tmp_path, "walks", *walks)
    with Store.open([original, newer]) as store:
        now = {one.cell: one for one in cell_figures(store.tallies())}
        assert not any("left out of all rates" in note for note in store.notes)
    expected = Walked(recordings=2, units=400, proven=150, by_library=0, lost=2, recordings_lost=1)
    assert now.pop(LOST.cell) == replace(figures.pop(LOST.cell), surveys=(expected,))
    assert {cell: one.harm.trials for cell, one in now.items()} == {
        cell: one.harm.trials for cell, one in figures.items()
    }


@pytest.mark.parametrize(
    ("rule", "lost", "disks", "is_noted"),
    [
        (0, 2, {"slog0": "plp", "data0": "volatile"}, True),
        (0, 2, {}, True),
        (0, 0, {"slog0": "plp"}, False),
        (0, 2, {"data0": "volatile"}, False),
        (0, 2, {"slog0": "plp, gone", "data0": "volatile"}, False),
        (1, 2, {"slog0": "plp"}, False),
    ],
)
def test_losses_of_an_older_walk_of_a_protected_disk_may_be_of_no_cut(
    rule: int, lost: int, disks: dict[str, str], is_noted: bool, original: Path, tmp_path: Path
) -> None:
    """The report says so, and a comparison, too."""
    at_cut = {
        name: DiskAtCut(persistence=kind.split(",")[0], policy="gone" if "gone" in kind else "all")
        for name, kind in disks.items()
    }
    walk = WalkDocument(rule=rule, recovered=9, outcomes={"intact": 9 - lost, "corrupted": lost})
    cut = structs.replace(LOST.cut, disks=at_cut)
    record = structs.replace(walked(1, recovered=9, lost=lost), walk=walk, cut=cut)
    newer = replay_run(tmp_path, "walks", record)
    words = (
        f"{LOST.cell}: {lost} walked states lost something, and may be states that no cut leaves"
    )
    with Store.open([newer]) as store:
        assert any(note.startswith(words) for note in store.notes) == is_noted
    compared = compare_runs([original], [original, newer]).remarks
    assert any(words in note for note in compared) == is_noted


def test_a_lost_state_of_a_safe_cell_is_worse_than_theory(original: Path, tmp_path: Path) -> None:
    """Where no cut lost anything, too: it is no recommendation, and not green."""
    with Store.open([original]) as store:
        cells = cell_figures(store.tallies())
    for figures in cells:
        is_safe = figures.guarantee == Guarantee.SAFE
        for lost in (0, 1):
            walked_too = replace(
                figures,
                surveys=(
                    Walked(
                        recordings=1,
                        units=9,
                        proven=0,
                        by_library=0,
                        lost=lost,
                        recordings_lost=lost,
                        broken=int(is_safe and lost),
                    ),
                ),
            )
            is_worse = figures.broken > 0 or (is_safe and lost > 0)
            assert walked_too.is_worse == is_worse
            assert (standing_of(walked_too) is Standing.WORSE) == is_worse
            assert not is_worse or tone_of(walked_too) != "safe"
            assert not is_worse or walked_too not in [
                one.figures for one in fastest_safe([walked_too])
            ]
            words = answer_in_words(walked_too, Sensitivity(versions={}, faults=()))
            assert ("worse than theory guarantees" in words) == is_worse


@pytest.mark.parametrize(
    ("walks", "words"),
    [
        (
            [(300, 0, 0)],
            "none of 300 recovered crash states lost anything "
            "(1 recording; at most 98 % of recordings lose in one)",
        ),
        (
            [(1000, 0, 2), (100, 400, 0)],
            "2 of 1,500 recovered or proven crash states lost something "
            "(2 recordings; 1.25-99 % of recordings lose in one)",
        ),
    ],
)
def test_walked_states_in_words(
    walks: list[tuple[int, int, int]], words: str, original: Path, tmp_path: Path
) -> None:
    made = [
        walked(place, recovered=recovered, proven=proven, lost=lost)
        for place, (recovered, proven, lost) in enumerate(walks)
    ]
    with Store.open([original, replay_run(tmp_path, "walks", *made)]) as store:
        figures = {one.cell: one for one in cell_figures(store.tallies())}[LOST.cell]
    assert words in answer_in_words(figures, Sensitivity(versions={}, faults=()))


def test_states_that_only_the_library_recovered_are_said_to_be(
    original: Path, tmp_path: Path
) -> None:
    """Those that the kernel's ZFS recovered, too, rest on both."""
    made = walked(1, recovered=100, proven=200, lost=0)
    document = made.part(WalkDocument)
    assert document is not None
    walk = structs.replace(document, engine="native", compared=36, given_up=4)
    run = replay_run(tmp_path, "walks", structs.replace(made, walk=walk))
    with Store.open([original, run]) as store:
        figures = {one.cell: one for one in cell_figures(store.tallies())}[LOST.cell]
    words = answer_in_words(figures, Sensitivity(versions={}, faults=()))
    assert "none of 300 recovered or proven crash states (260 of them by OpenZFS's library" in words

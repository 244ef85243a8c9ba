"""Which records count: one gate for every reader, for walks as for cuts.

The sentence of a cell whose recordings were walked: in words, and in no rate.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report.test_report_unresolved import DAMAGED, ORIGINALS, replay_run
from suites.selftest.unit.report_records import figures_of as run_figures
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import DiskAtCut
from torture.features.walk.documents import WalkDocument
from torture.features.walk.surveys import Walked
from torture.features.walk.tasks import WALKED
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import read_records
from torture.report.exports import EXPORTS
from torture.report.figures.answer import (
    Standing,
    answer,
    answer_in_words,
    fastest_safe,
    standing_of,
    tone_of,
)
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.versus import compare_runs
from torture.report.page.render import render_page
from torture.report.reading import counting_rules
from torture.report.reading.store import Store
from torture.report.terminal import EXIT_WORSE, outcome_table, print_run_comparison

SAFE = Cell.parse("iscsi-always-noslog-ext4-bothdie")
LOSES = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")
OLD, NEW = "2026-11-20T00:00:00+0000", "2026-11-23T00:00:00+0000"
_UNMEASURED = Sensitivity(versions={}, faults=())
READS = re.compile(r"\b(FROM|JOIN|INTO|UPDATE)\s+records\b")


def cuts(cell: Cell, number: int, *, seed: int = 1) -> list[TrialRecord]:
    return [
        changed(record, verdict=Verdict.INTACT, lost=0, rollback_ms=None, error=None)
        for record in make_records(number, cells=[cell], seed=seed)
    ]


def walk(cell: Cell = SAFE, *, lost: int = 0, seed: int = 1) -> TrialRecord:
    (cut,) = cuts(cell, 1, seed=seed)
    return changed(
        cut,
        trial=f"walked.{cut.trial}",
        origin=WALKED,
        verdict=Verdict.CORRUPTED if lost else Verdict.INTACT,
        lost=lost,
        reasons=("a block is stale",) if lost else (),
        walk=WalkDocument(recovered=100, outcomes={"intact": 100 - lost, "corrupted": lost}),
    )


def figures_of(*runs: Path) -> CellFigures:
    with Store.open(runs) as store:
        (figures,) = cell_figures(store.tallies())
    return figures


def figures_by_cell(*runs: Path) -> dict[str, CellFigures]:
    with Store.open(runs) as store:
        return {figures.cell: figures for figures in cell_figures(store.tallies())}


def test_no_other_module_reads_the_table_of_all_records() -> None:
    gate = Path(counting_rules.__file__)
    sources = [
        file
        for folder in ("torture", "fixtures", "tools", "suites")
        for file in (CHECKOUT / folder).rglob("*")
        if file.suffix in (".py", "") and file.is_file() and "__pycache__" not in file.parts
    ]
    readers = [file for file in sources if READS.search(file.read_text(errors="replace"))]
    assert readers == [gate]


@pytest.mark.parametrize(
    ("accuser", "voids"),
    [
        (walk(lost=1), True),
        (
            structs.replace(
                walk(lost=1), origin=Origin.REPLAY, repeats="a trial", trial="a trial.replay"
            ),
            False,
        ),
        (structs.replace(walk(lost=1), origin=Origin.PLANTED, fault="flush-dropped"), False),
        (structs.replace(walk(lost=1), fault="flush-dropped"), False),
    ],
    ids=["void", "replay around a cut", "planted", "walk of a planted fault"],
)
def test_such_a_walk_does_not_accuse_a_sound_cell(
    accuser: TrialRecord, voids: bool, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "cuts", cuts(SAFE, 30))
    walks = write_run(tmp_path / "walks", [accuser, walk(seed=2)], begun=NEW)
    if voids:
        (walks / "run.json").write_text(
            f'{{"run": "walks", "void": {{"{accuser.trial}": "called lost by mistake"}}}}'
        )
    figures = figures_of(run, walks)
    (walked,) = figures.surveys
    assert (walked.recordings, walked.lost, figures.is_worse) == (1, 0, False)
    with Store.open([run, walks]) as store:
        assert (store.losses(most=9)[0], store.breaches(), store.cases(most=9)) == (0, (), ())
        assert any("called lost by mistake" in note for note in store.notes) == voids


def test_an_inconclusive_walk_accuses_nothing_and_leaves_the_cell_open(tmp_path: Path) -> None:
    broken_off = changed(walk(lost=1), verdict=Verdict.INCONCLUSIVE)
    runs = [write_run(tmp_path / "cuts", cuts(SAFE, 60))]
    assert standing_of(figures_of(*runs)) is Standing.SAFE
    runs.append(write_run(tmp_path / "walks", [broken_off], begun=NEW))
    figures = figures_of(*runs)
    (walked,) = figures.surveys
    assert (walked.recordings, walked.inconclusive) == (0, 1)
    assert standing_of(figures) is Standing.OPEN


def test_a_walk_of_one_seed_in_two_runs_counts_once_and_its_breach_stays(tmp_path: Path) -> None:
    again = structs.replace(walk(), timings={"load": 4321})
    runs = [
        write_run(tmp_path / "old", [walk(lost=2)], begun=OLD),
        write_run(tmp_path / "new", [again], begun=NEW),
    ]
    (walked,) = figures_of(*runs).surveys
    assert (walked.recordings, walked.units, walked.lost, walked.broken) == (1, 100, 2, 1)


def test_a_run_of_walks_alone_has_a_verdict_losses_and_failing_tests(tmp_path: Path) -> None:
    run = write_run(tmp_path / "walks", [walk(lost=7), walk(seed=2, lost=1), walk(seed=3)])
    with Store.open([run]) as store:
        (group,) = answer(cell_figures(store.tallies()))
        assert group.sentence == (
            "theory says safe: no cut of 1 configuration was conclusive; 8 of 300 walked crash states "
            "lost something; 1 configuration worse than predicted"
        )
        count, losses = store.losses(most=9)
        assert count == len(losses) == 2
        page = render_page(store)
        (markdown,) = EXPORTS["markdown"].write(store, tmp_path)
    assert "No power cut was measured.</p>" not in page
    assert "8 of 300 recovered crash states lost something" in page
    assert "Every loss: 2 trials" in page
    assert "worse than predicted" in markdown.read_text()


def test_the_table_at_a_runs_end_counts_walks_as_the_page_does() -> None:
    cells = run_figures(
        [walk(lost=7), walk(seed=2), structs.replace(walk(lost=9, seed=3), fault="x")]
    )
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(outcome_table(cells, width=200))
    table = capture.get()
    assert "7/200" in table
    assert "No trial was" not in table


def test_a_comparison_sees_walks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound = write_run(tmp_path / "old", [walk(seed=seed) for seed in range(3)])
    worse = write_run(
        tmp_path / "new", [walk(seed=seed, lost=7 * (seed == 4)) for seed in (3, 4, 5)]
    )
    assert print_run_comparison(sound, sound) == 0
    assert print_run_comparison(sound, worse) == EXIT_WORSE
    assert "A guarantee is broken" in capsys.readouterr().out
    lossy = [
        write_run(tmp_path / f"{lost}", [walk(LOSES, seed=seed, lost=lost) for seed in range(8)])
        for lost in (0, 5)
    ]
    assert compare_runs([lossy[0]], [lossy[1]]).worse
    assert compare_runs([sound], [write_run(tmp_path / "cuts", cuts(SAFE, 3))]).vanished == (
        f"{SAFE.name} (walks)",
    )


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ({"load_ms": 60_000}, 2),
        ({"load_ms": 8_000, "brought": {"fio-own": "ab" * 32}}, 2),
        ({"load_ms": 8_000, "engine_state": "another"}, 1),
        ({"load_ms": 0}, 1),
    ],
    ids=["duration", "files", "state of the suite", "older record"],
)
def test_a_trial_of_another_load_is_another_trial(
    other: dict[str, object], counts: int, tmp_path: Path
) -> None:
    """A loss under another load was dropped as another record of the same trial."""
    (cut,) = cuts(LOSES, 1)
    first = structs.replace(cut, load_ms=8_000)
    second = changed(
        structs.replace(cut, timings={"load": 9}), verdict=Verdict.ROLLED_BACK, lost=4, **other
    )
    runs = [
        write_run(tmp_path / "old", [first], begun=OLD),
        write_run(tmp_path / "new", [second], begun=NEW),
    ]
    figures = figures_of(*runs)
    assert (figures.trials, figures.harm.events) == (counts, counts - 1)
    both = write_run(tmp_path / "both", [first, second])
    assert len(read_records(both / "trials.jsonl").records) == counts


@pytest.mark.parametrize("is_copy_later", [True, False])
def test_the_latest_judgement_of_a_try_counts_wherever_it_stands(
    is_copy_later: bool, tmp_path: Path
) -> None:
    (cut,) = cuts(SAFE, 1)
    accused = changed(cut, verdict=Verdict.CORRUPTED, lost=3)
    cleared = structs.replace(cut, load_ms=8_000, scored_s=1_800_000_000)
    pair = [accused, cleared] if is_copy_later else [cleared, accused]
    runs = [write_run(tmp_path / f"{place}", [one]) for place, one in enumerate(pair)]
    figures = figures_of(*runs)
    assert (figures.trials, figures.harm.events, figures.broken) == (1, 0, 0)
    another_try = write_run(
        tmp_path / "again", [structs.replace(accused, timings={"load": 9})], begun=NEW
    )
    figures = figures_of(*runs, another_try)
    assert (figures.trials, figures.harm.events, figures.harm.later) == (1, 1, 1)


def test_a_rate_says_how_many_states_of_the_suite_it_pools(tmp_path: Path) -> None:
    made = [structs.replace(record, engine_state="0123abcd") for record in cuts(SAFE, 3)]
    with Store.open([write_run(tmp_path / "one", made)]) as store:
        assert not any("states of the suite" in note for note in store.notes)
    older = cuts(SAFE, 2, seed=2)
    with Store.open([tmp_path / "one", write_run(tmp_path / "two", older)]) as store:
        assert (
            "trials of 2 states of the suite count together: 3 of 0123abcd, 2 of an unknown state"
            in store.notes
        )


def test_intact_trials_of_an_older_rule_are_marked(tmp_path: Path) -> None:
    failed = "operation 71 failed in the client: open, errno 17"
    first, second, third = cuts(SAFE, 3)
    older = [
        changed(first, reasons=(failed,)),
        changed(second, reasons=(failed,), writers=3),
        third,
    ]
    with Store.open([write_run(tmp_path / "run", older)]) as store:
        (note,) = store.notes
    assert note.startswith(f"operations failed in the client of 1 intact trials: 1 of {SAFE.name}.")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_run(tmp_path / "original", ORIGINALS, begun="2026-11-20T00:00:00+0000")


def walked(number: int, *, recovered: int, lost: int, proven: int = 0) -> TrialRecord:
    outcomes = {"intact": recovered + proven - lost, "corrupted": lost}
    return changed(
        DAMAGED,
        origin=WALKED,
        trial=f"walked.{number}.{DAMAGED.trial}",
        walk=WalkDocument(recovered=recovered, proven=proven, outcomes=outcomes),
    )


def test_walked_states_join_the_sentence_and_change_no_rate(original: Path, tmp_path: Path) -> None:
    figures = figures_by_cell(original)
    walks = [walked(1, recovered=150, proven=150, lost=2), walked(2, recovered=100, lost=0)]
    newer = replay_run(tmp_path, "walks", *walks)
    now = figures_by_cell(original, newer)
    with Store.open([original, newer]) as store:
        assert not any("left out of all rates" in note for note in store.notes)
    expected = Walked(recordings=2, units=400, proven=150, by_library=0, lost=2, recordings_lost=1)
    assert now.pop(DAMAGED.cell) == replace(figures.pop(DAMAGED.cell), surveys=(expected,))
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
    cut = structs.replace(DAMAGED.cut, disks=at_cut)
    record = structs.replace(walked(1, recovered=9, lost=lost), walk=walk, cut=cut)
    newer = replay_run(tmp_path, "walks", record)
    words = (
        f"{DAMAGED.cell}: {lost} walked states lost something, and may be states that no cut leaves"
    )
    with Store.open([newer]) as store:
        assert any(note.startswith(words) for note in store.notes) == is_noted
    compared = compare_runs([original], [original, newer]).remarks
    assert any(words in note for note in compared) == is_noted


def test_a_lost_state_of_a_safe_cell_is_worse_than_theory(original: Path, tmp_path: Path) -> None:
    """Where no cut lost anything, too: it is no recommendation, and not green."""
    for figures in figures_by_cell(original).values():
        is_safe = figures.guarantee == Guarantee.SAFE
        for lost in (0, 1):
            survey = Walked(
                recordings=1, units=9, proven=0, by_library=0, lost=lost, recordings_lost=lost,
                broken=int(is_safe and lost),
            )  # fmt: skip
            walked_too = replace(figures, surveys=(survey,))
            is_worse = figures.broken > 0 or (is_safe and lost > 0)
            assert walked_too.is_worse == is_worse
            assert (standing_of(walked_too) is Standing.WORSE) == is_worse
            assert not is_worse or tone_of(walked_too) != "safe"
            assert not is_worse or walked_too not in [
                one.figures for one in fastest_safe([walked_too])
            ]
            words = answer_in_words(walked_too, _UNMEASURED)
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
    figures = figures_by_cell(original, replay_run(tmp_path, "walks", *made))[DAMAGED.cell]
    assert words in answer_in_words(figures, _UNMEASURED)


def test_states_that_only_the_library_recovered_are_said_to_be(
    original: Path, tmp_path: Path
) -> None:
    """Those that the kernel's ZFS recovered, too, rest on both."""
    made = walked(1, recovered=100, proven=200, lost=0)
    document = made.part(WalkDocument)
    assert document is not None
    walk = structs.replace(document, engine="native", compared=36, given_up=4)
    run = replay_run(tmp_path, "walks", structs.replace(made, walk=walk))
    figures = figures_by_cell(original, run)[DAMAGED.cell]
    words = answer_in_words(figures, _UNMEASURED)
    assert "none of 300 recovered or proven crash states (260 of them by OpenZFS's library" in words

"""Trials that no rate counts, or not once: inconclusive ones, empty cuts, tries, and void ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument, Phase
from torture.facts.stats.rates import in_words, printed_bounds, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import TrialRecord
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
    with Store.open([tmp_path / "run"]) as store:
        page = unescape(render_page(store))
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

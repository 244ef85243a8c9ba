"""Every rate states the effect of inconclusive trials; empty cuts have none."""

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
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.phase import Phase
from torture.facts.stats.rates import in_words, printed_bounds, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.answer import Group, Standing, answer, standing_of
from torture.report.figures.cell_figures import cell_figures, rates_either_way
from torture.report.page.render import render_page
from torture.report.reading.store import Store

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

"""The plan of a night: its trials, and whose are missing."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import usual_cell
from suites.selftest.unit.night_plans import CELLS, SEED, TRIALS, names_of, plan_of
from torture.matrix.cells import Cell
from torture.night.plan import Plan, seed_of_night


def test_a_plan_has_the_very_trials_that_a_run_draws() -> None:
    found = names_of(CELLS, trials=TRIALS, seed=SEED)
    assert plan_of(4).gaps(found) == ()
    assert plan_of(4).strangers(found) == 0
    assert plan_of(4).strangers(names_of(CELLS, trials=TRIALS, seed=SEED + 1)) == len(found)


@given(
    cells=st.lists(usual_cell(), min_size=1, max_size=20, unique=True),
    shards=st.integers(1, 25),
    data=st.data(),
)
def test_a_shard_whose_trials_are_missing_is_named(
    cells: list[Cell], shards: int, data: st.DataObject
) -> None:
    plan = Plan(cells=tuple(cells), shards=shards, trials=2, seed=1)
    lost = data.draw(st.sets(st.sampled_from(plan.all_shards)))
    came = [
        cell for shard in plan.all_shards if shard not in lost for cell in shard.share_of(cells)
    ]
    gaps = plan.gaps(names_of(came, trials=2, seed=1))
    assert {gap.shard for gap in gaps} == lost
    assert all(gap.missing == gap.trials == 2 * len(gap.cells) for gap in gaps)
    assert all("is missing" in str(gap) for gap in gaps)


def test_a_shard_that_was_stopped_is_not_complete() -> None:
    found = names_of(CELLS, trials=TRIALS, seed=SEED)
    lost = sorted(found)[0]
    [gap] = plan_of(3).gaps(found - {lost})
    assert (gap.missing, gap.trials) == (1, 4 * TRIALS)
    assert gap.cells == (lost.split(".")[0],)
    assert "not complete: 1 of its 32 trials" in str(gap)


def test_another_night_has_another_seed() -> None:
    assert seed_of_night(date(2026, 7, 29)) == 20260729
    assert seed_of_night(date(2026, 8, 1)) != seed_of_night(date(2026, 7, 31))

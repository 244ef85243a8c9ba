"""The cut scheduler: the moment is the seed's alone, within the load, mostly amid writes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torture.plan.cut_plan import Aim, CutPlan, draw_cut

SEEDS = range(2000)
LOAD_MS = 4000


@settings(deadline=None)
@given(seed=st.integers(0, 2**64 - 1), load_ms=st.integers(500, 600_000))
def test_the_same_seed_draws_the_same_plan_within_the_load(seed: int, load_ms: int) -> None:
    plan = draw_cut(seed=seed, load_ms=load_ms)
    assert plan == draw_cut(seed=seed, load_ms=load_ms)
    assert load_ms / 4 <= plan.after_ms <= load_ms
    assert 0 <= plan.delay_ms <= 40
    assert plan.aim is Aim.OPERATION or plan.delay_ms == 0
    assert (plan.count > 0) == (plan.aim in (Aim.WRITE, Aim.FLUSH))


@pytest.mark.parametrize(
    ("aim", "share"),
    [(Aim.ANYWHERE, 0.2), (Aim.OPERATION, 0.3), (Aim.WRITE, 0.3), (Aim.FLUSH, 0.2)],
)
def test_most_cuts_take_aim(aim: Aim, share: float) -> None:
    plans = [draw_cut(seed=seed, load_ms=LOAD_MS) for seed in SEEDS]
    # four standard deviations of 2000 draws at 0.4
    assert sum(plan.aim is aim for plan in plans) / len(plans) == pytest.approx(share, abs=0.044)


def test_the_cuts_cover_the_load_evenly() -> None:
    """The largest gap and the quarters: a scheduler that leaves a moment out would never hit it."""
    moments = sorted(draw_cut(seed=seed, load_ms=LOAD_MS).after_ms for seed in SEEDS)
    assert max(later - earlier for earlier, later in pairwise(moments)) < LOAD_MS / 100
    for quarter in range(4):
        low = LOAD_MS * (0.25 + quarter * 0.1875)
        high = low + LOAD_MS * 0.1875
        share = sum(low <= moment < high for moment in moments) / len(moments)
        assert share == pytest.approx(0.25, abs=0.04)


def test_the_length_of_the_load_moves_the_moment_and_nothing_else() -> None:
    for seed in SEEDS[:100]:
        short, long = (draw_cut(seed=seed, load_ms=load_ms) for load_ms in (1000, 8000))
        assert long.after_ms == pytest.approx(8 * short.after_ms)
        assert (long.aim, long.delay_ms) == (short.aim, short.delay_ms)


def test_a_plan_is_plain_data() -> None:
    plan = draw_cut(seed=7, load_ms=LOAD_MS)
    assert CutPlan(**json.loads(json.dumps(plan.as_json()))) == plan


def test_the_plan_of_a_seed_never_changes() -> None:
    """Recorded once: `tools/replay` of an old trial must find the old moment."""
    plan = draw_cut(seed=1, load_ms=LOAD_MS)
    recorded = CutPlan(after_ms=1011.8975468069426, aim=Aim.WRITE, delay_ms=0.0, count=1)
    assert plan == recorded

"""`--shard`: every cell in exactly one shard, shards of one size, and only after all other choices."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import usual_cell
from torture.choices.matrix.axes import FATE
from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.matrix.shards import Shard
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import Matrix
from torture.trials.plan.draw import draw_trials

some_cells = st.lists(usual_cell(), max_size=60, unique=True)
some_counts = st.integers(min_value=1, max_value=80)


@given(cells=some_cells, count=some_counts)
def test_each_cell_is_in_exactly_one_shard(cells: list[Cell], count: int) -> None:
    shares = [shard.share_of(cells) for shard in Shard.all_of(count)]
    assert sum(map(len, shares)) == len(cells)
    assert frozenset().union(*shares) == set(cells)


@given(cells=some_cells, count=some_counts)
def test_no_shard_has_two_cells_more_than_another_nor_two_slow_ones(
    cells: list[Cell], count: int
) -> None:
    shares = [shard.share_of(cells) for shard in Shard.all_of(count)]
    for fates in (set(Fate), *({fate} for fate in Fate)):
        sizes = [sum(one[FATE] in fates for one in share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


@given(cells=some_cells, count=some_counts, random=st.randoms(use_true_random=False))
def test_the_order_of_the_cells_does_not_matter(
    cells: list[Cell], count: int, random: Random
) -> None:
    shuffled = random.sample(cells, len(cells))
    for shard in Shard.all_of(count):
        assert shard.share_of(shuffled + cells) == shard.share_of(cells)


@given(count=st.integers(min_value=1, max_value=12), trials=st.integers(1, 3))
def test_the_trials_of_the_shards_are_those_of_the_whole_run(count: int, trials: int) -> None:
    cells = cells_of(Matrix.QUICK)
    whole = draw_trials(cells, trials=trials, run_seed=7, load_ms=1000)
    split = [
        spec
        for shard in Shard.all_of(count)
        for spec in draw_trials(
            sorted(shard.share_of(cells)), trials=trials, run_seed=7, load_ms=1000
        )
    ]
    assert len(split) == len(whole)
    assert set(split) == set(whole)


@pytest.mark.parametrize("text", ["1/1", "3/12", "12/12"])
def test_a_shard_is_read_as_it_is_written(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["0/12", "13/12", "0/0", "-1/4", "3", "3/", "/3", "3/12/1", " 3/12", "a/b", "٣/١٢", ""]
)
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"shard"):
        Shard.parse(text)

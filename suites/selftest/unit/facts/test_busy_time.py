"""Spans of time against a count of single moments."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from torture.facts.speed.busy_time import Span, length_of, shared_by, union_of

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def moments(of: list[Span]) -> set[int]:
    """Every nanosecond in one of the spans."""
    return {moment for start, end in of for moment in range(start, end)}


@given(spans)
def test_a_union_has_each_moment_once(some: list[Span]) -> None:
    union = union_of(some)
    assert moments(union) == moments(some)
    assert length_of(union) == len(moments(some))
    assert all(before[1] < after[0] for before, after in pairwise(union))


@given(spans, spans)
def test_shared_time_is_that_of_the_moments_in_both(one: list[Span], other: list[Span]) -> None:
    shared = shared_by(union_of(one), union_of(other))
    assert shared == len(moments(one) & moments(other))

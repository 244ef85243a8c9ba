"""The order of the verdicts, from best to worst, with `inconclusive` beside it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torture.oracles.verdict.guarantee import Verdict, worst

ORDER = (
    Verdict.INTACT,
    Verdict.REPAIRED,
    Verdict.ROLLED_BACK,
    Verdict.CORRUPTED,
    Verdict.UNREPAIRABLE,
    Verdict.UNAVAILABLE,
    Verdict.POOL_LOST,
)
"""As in the design."""


def test_every_verdict_but_one_has_a_place() -> None:
    assert [verdict.badness for verdict in ORDER] == list(range(len(ORDER)))
    assert set(Verdict) - set(ORDER) == {Verdict.INCONCLUSIVE}


def test_inconclusive_has_no_place() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        _ = Verdict.INCONCLUSIVE.badness


def test_the_words_are_those_of_the_records() -> None:
    assert [str(verdict) for verdict in ORDER] == [
        "intact",
        "repaired",
        "rolled-back",
        "corrupted",
        "unrepairable",
        "unavailable",
        "pool-lost",
    ]


def test_loss_begins_where_acknowledged_data_is_gone() -> None:
    assert {verdict for verdict in Verdict if verdict.is_loss} == set(ORDER[2:])


def test_corruption_begins_where_the_rest_is_wrong() -> None:
    assert {verdict for verdict in Verdict if verdict.is_corruption} == set(ORDER[3:])


def test_inconclusive_is_neither_loss_nor_corruption() -> None:
    assert not Verdict.INCONCLUSIVE.is_loss
    assert not Verdict.INCONCLUSIVE.is_corruption


@settings(deadline=None)
@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_the_worst_is_the_one_furthest_down(verdicts: list[Verdict]) -> None:
    assert worst(verdicts) is [verdict for verdict in ORDER if verdict in verdicts][-1]


def test_the_worst_of_nothing_and_of_inconclusive_is_not_made_up() -> None:
    with pytest.raises(ValueError, match="empty"):
        worst([])
    with pytest.raises(ValueError, match="not in tuple"):
        worst([Verdict.INTACT, Verdict.INCONCLUSIVE])

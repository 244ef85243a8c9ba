"""The drift of a NAS that stays up, by its recoveries' times and by its memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torture.facts.evidence.walk_document import WalkDocument
from torture.trials.trial.walk.times import Times


def _after(times_s: list[float], available_mib: Callable[[], int | None]) -> WalkDocument:
    """The document of a walk that looks at its NAS after each recovery."""
    times, document = Times(), WalkDocument()
    for time_s in times_s:
        times._recovering_s.append(time_s)
        document = times.with_drift(document, available_mib=available_mib)
    return document


def test_two_hundred_recoveries_have_a_first_and_a_last_hundred() -> None:
    short = _after([0.1] * 150 + [0.2] * 49, lambda: 500)
    assert (short.first_ms, short.last_ms) == (0, 0)
    longer = _after([0.1] * 150 + [0.2] * 50, lambda: 500)
    assert (longer.first_ms, longer.last_ms) == (100, 150)
    longest = _after([0.1] * 150 + [0.2] * 101, lambda: 500)
    assert (longest.first_ms, longest.last_ms) == (100, 200)


def test_the_memory_is_read_once_after_each_hundred() -> None:
    left = iter((593, 573, 564))
    assert _after([0.1] * 99, lambda: next(left)).nas_available_mib == ()
    assert _after([0.1] * 299, lambda: next(left)).nas_available_mib == (593, 573)


def test_a_nas_that_is_gone_is_read_at_the_next_recovery() -> None:
    left = iter((None, None, 593))
    assert _after([0.1] * 102, lambda: next(left)).nas_available_mib == (593,)


def test_an_engine_without_a_nas_has_no_memory() -> None:
    assert _after([0.1] * 300, lambda: None).nas_available_mib == ()


def test_a_block_counts_even_if_it_fails() -> None:
    times = Times()
    with pytest.raises(ValueError, match="a bad state"), times.recovering():
        raise ValueError("a bad state")
    with times.checking():
        pass
    assert (len(times._recovering_s), len(times._checking_s)) == (1, 1)
    times._recovering_s, times._checking_s = [0.25, 0.5], [0.125]
    document = times.with_sums(WalkDocument())
    assert (document.recovering_ms, document.checking_ms) == (750, 125)

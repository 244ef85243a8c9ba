"""Bounded waiting."""

from __future__ import annotations

import time

import pytest

from torture.deadlines import truth, wait_for, wait_until_true
from torture.errors import DeadlineExceeded, HarnessError


def test_the_first_result_comes_back_at_once() -> None:
    begun = time.monotonic()
    assert wait_for(lambda: "there", what="it", deadline_s=60, poll_s=30) == "there"
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("result", [0, False, "", ()])
def test_a_false_result_is_a_result(result: object) -> None:
    assert wait_for(lambda: result, what="it", deadline_s=0) == result


def test_it_asks_again_until_there_is_something() -> None:
    answers = iter([None, None, 7])
    assert wait_for(lambda: next(answers), what="it", deadline_s=5, poll_s=0.001) == 7


def test_the_deadline_names_the_missing_fact_and_the_next_command() -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineExceeded) as caught:
        wait_for(lambda: None, what="socket", deadline_s=0.1, poll_s=5, poll_max_s=5, hint="look")
    assert 0.1 <= time.monotonic() - begun < 4, "a long pause must not outlast the deadline"
    assert str(caught.value) == "no socket within 0.1 s\n  next: look"
    assert isinstance(caught.value, HarnessError)


def test_it_asks_once_more_at_the_deadline() -> None:
    """Else a slow machine would report missing what came during its last pause."""
    begun = time.monotonic()

    def late() -> bool | None:
        return truth(time.monotonic() - begun >= 0.1)

    assert wait_for(late, what="it", deadline_s=0.1, poll_s=1, poll_max_s=1)


def test_the_pauses_double_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    pauses: list[float] = []

    def sleep(pause_s: float) -> None:
        nonlocal now_s
        now_s += pause_s
        pauses.append(pause_s)

    monkeypatch.setattr("torture.deadlines.time.monotonic", lambda: now_s)
    monkeypatch.setattr("torture.deadlines.time.sleep", sleep)
    with pytest.raises(DeadlineExceeded):
        wait_for(lambda: None, what="it", deadline_s=20.5, poll_s=1, poll_max_s=8)
    assert pauses == [1, 2, 4, 8, 5.5]


def test_an_exception_of_the_question_goes_through() -> None:
    def panics() -> None:
        raise HarnessError("the guest panicked")

    with pytest.raises(HarnessError, match="panicked"):
        wait_for(panics, what="it", deadline_s=60)


def test_truth_is_true_or_none() -> None:
    assert truth("x") is True
    assert truth("") is None


def test_waiting_returns_whether_the_condition_came_true() -> None:
    answers = iter([False, False, True])
    assert wait_until_true(lambda: next(answers), deadline_s=20, poll_s=0.001)
    assert not wait_until_true(lambda: False, deadline_s=0.01, poll_s=0.001)

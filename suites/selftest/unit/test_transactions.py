"""The oracle of applications, against all moments tried one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.evidence.ledger import Begin, Done, Failed, Ledger, OperationKind, parse_ledger
from torture.verdict.applications.transactions import Found, consult_transactions, parse_found
from torture.verdict.unreadable import UnreadableError
from torture.verdict.verdicts import Verdict

Story = list[tuple[str, int]]
"""Words and transactions: `begin`, `lazy`, `settle` begin one, `done` and `failed` end it."""

_KINDS = {
    "begin": OperationKind.TRANSACTION,
    "settle": OperationKind.TRANSACTION,
    "lazy": OperationKind.LAZY_TRANSACTION,
}


def ledger_of(story: Story, *, writers: int = 1) -> Ledger:
    events: list[Begin | Done | Failed] = []
    for place, (word, seq) in enumerate(story):
        if word in _KINDS:
            events.append(
                Begin(
                    t_ms=10.0 * place,
                    seq=seq,
                    writer=seq % writers,
                    kind=_KINDS[word],
                    file=0,
                    blocks=(),
                    size_blocks=0,
                    what={"settle": True} if word == "settle" else {"sizes": [1]},
                )
            )
        elif word == "done":
            events.append(Done(t_ms=10.0 * place, seq=seq))
        else:
            events.append(Failed(t_ms=10.0 * place, seq=seq, errno=5, call="COMMIT"))
    return Ledger(events=tuple(events))


def found(*whole: int, **changes: Any) -> Found:
    seen: dict[str, Any] = {
        "trial": 1,
        "mode": "application",
        "whole": frozenset(whole),
        "parts": {},
        "complaints": (),
        "refused": "",
    }
    return Found(**(seen | changes))


TWO: Story = [("begin", 1), ("done", 1), ("begin", 2), ("done", 2), ("begin", 3)]
LAZY: Story = [
    ("lazy", 1), ("done", 1), ("settle", 2), ("done", 2), ("lazy", 3), ("done", 3), ("lazy", 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("story", "seen", "verdict", "lost"),
    [
        (TWO, found(1, 2), Verdict.INTACT, 0),
        (TWO, found(1, 2, 3), Verdict.INTACT, 0),
        (TWO, found(1), Verdict.ROLLED_BACK, 1),
        (TWO, found(), Verdict.ROLLED_BACK, 2),
        (TWO, found(2), Verdict.CORRUPTED, 1),
        (TWO, found(1, 2, 9), Verdict.CORRUPTED, 0),
        (TWO, found(1, parts={2: "rows [0] of 2"}), Verdict.CORRUPTED, 0),
        (TWO, found(1, 2, parts={3: "rows [0] of 2"}), Verdict.CORRUPTED, 0),
        (TWO, found(1, 2, complaints=("row 3 missing from index",)), Verdict.CORRUPTED, 0),
        (TWO, found(refused="malformed"), Verdict.UNREPAIRABLE, 2),
        (LAZY, found(1, 3), Verdict.INTACT, 0),
        (LAZY, found(1), Verdict.INTACT, 0),
        (LAZY, found(1, 3, 4), Verdict.INTACT, 0),
        (LAZY, found(1, 4), Verdict.CORRUPTED, 0),
        (LAZY, found(), Verdict.ROLLED_BACK, 1),
        (LAZY, found(3), Verdict.CORRUPTED, 1),
        ([*LAZY, ("failed", 4)], found(1, 3), Verdict.INTACT, 0),
    ],
)
def test_each_outcome_has_its_verdict(
    story: Story, seen: Found, verdict: Verdict, lost: int
) -> None:
    findings = consult_transactions(ledger_of(story), seen, cut_ms=100.0)
    assert (findings.verdict, findings.lost) == (verdict, lost)
    assert bool(findings.reasons) is (verdict is not Verdict.INTACT or ("failed", 4) in story)


def test_what_its_checks_say_comes_first_and_leaves_room_for_what_is_gone() -> None:
    lines = tuple(f"page {number} is broken" for number in range(40))
    told = consult_transactions(ledger_of(TWO), found(complaints=lines), cut_ms=None).reasons
    assert told[0] == "its own check: page 0 is broken"
    assert "its own checks say 35 lines more" in told
    assert "transaction 2 is gone" in told


def test_what_is_settled_once_is_not_settled_again_later() -> None:
    """Else another writer's lazy transaction would have to be there although nobody settled it."""
    story: Story = [
        ("lazy", 1), ("done", 1), ("settle", 3), ("done", 3),
        ("lazy", 4), ("done", 4), ("settle", 5), ("done", 5),
    ]  # fmt: skip
    findings = consult_transactions(ledger_of(story, writers=2), found(1), cut_ms=None)
    assert (findings.verdict, findings.lost) == (Verdict.INTACT, 0)


def test_a_rollback_is_measured_from_the_first_that_is_gone_to_the_cut() -> None:
    findings = consult_transactions(ledger_of(TWO), found(1), cut_ms=100.0)
    assert findings.rollback_ms == 100.0 - 30.0


def test_a_transaction_that_ends_and_never_began_is_no_ledger() -> None:
    with pytest.raises(UnreadableError, match="had not begun"):
        consult_transactions(ledger_of([("done", 1)]), found(), cut_ms=None)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """What two writers do, each one thing at a time."""
    story: Story = []
    busy: dict[int, int] = {}
    seq = 0
    for writer in draw(st.lists(st.integers(0, 1), max_size=14)):
        if writer in busy:
            story.append(("done", busy.pop(writer)))
        else:
            seq += 1 + ((seq + 1) % 2 != writer)
            busy[writer] = seq
            story.append((draw(st.sampled_from(("begin", "lazy", "settle"))), seq))
    return story


def _moments_that_explain(story: Story, whole: frozenset[int]) -> list[int]:
    """The moments at which the writers' transactions could have left just these."""
    settles = {seq for word, seq in story if word == "settle"}
    fitting = []
    for moment in range(len(story) + 1):
        begun = {seq for word, seq in story[:moment] if word != "done"}
        done = {seq for word, seq in story[:moment] if word == "done"}
        if done - settles <= whole <= begun:
            fitting.append(moment)
    return fitting


def _last_durable(story: Story) -> int:
    """Where something that is to be found was made durable last; -1 if nothing was."""
    last = -1
    waiting: set[int] = set()
    word_of = {seq: word for word, seq in story if word != "done"}
    for place, (word, seq) in enumerate(story):
        if word != "done":
            continue
        if word_of[seq] == "lazy":
            waiting.add(seq)
            continue
        settled = {lazy for lazy in waiting if lazy % 2 == seq % 2}
        waiting -= settled
        last = place if settled or word_of[seq] == "begin" else last
    return last


@given(stories(), st.data())
def test_the_verdict_is_that_of_all_moments_tried_one_by_one(
    story: Story, data: st.DataObject
) -> None:
    writing = sorted({seq for word, seq in story if word in ("begin", "lazy")})
    gone = data.draw(st.sets(st.sampled_from(writing))) if writing else set()
    whole = frozenset(writing) - gone
    verdict = consult_transactions(ledger_of(story, writers=2), found(*whole), cut_ms=None).verdict
    fitting = _moments_that_explain(story, whole)
    if not fitting:
        assert verdict is Verdict.CORRUPTED
    elif max(fitting) > _last_durable(story):
        assert verdict is Verdict.INTACT
    else:
        assert verdict is Verdict.ROLLED_BACK


GOOD = {
    "trial": 1, "mode": "application", "whole": [1], "parts": {"2": "half"}, "complaints": ["x"],
    "refused": "", "complete": True,
}  # fmt: skip


def test_a_read_back_is_what_it_says() -> None:
    seen = parse_found(json.dumps(GOOD))
    assert (seen.whole, seen.parts, seen.complaints) == (frozenset({1}), {2: "half"}, ("x",))


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", json.dumps(GOOD)[:-9], json.dumps(GOOD | {"complete": False}),
        json.dumps(GOOD | {"whole": "1"})[:-1], json.dumps(GOOD | {"whole": ["one"]}),
        json.dumps(GOOD | {"parts": [2]}), json.dumps(GOOD | {"parts": {"two": "half"}}),
    ],
)  # fmt: skip
def test_one_that_is_cut_off_or_garbled_is_no_evidence(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_found(text)


def test_the_ledger_keeps_what_a_transaction_does() -> None:
    line = (
        b'{"event":"begin","t_ms":1,"seq":4,"writer":0,"op":"lazy-transaction","file":0,"blocks":[],'
        b'"size":0,"what":{"sizes":[5]}}\n'
    )
    (begin,) = parse_ledger(line).events
    assert isinstance(begin, Begin)
    assert begin.what == {"sizes": [5]}
    assert not begin.kind.is_durable
    assert OperationKind.TRANSACTION.is_durable

"""The oracle of applications, against all moments tried one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.evidence.ledger import Begin, Done, Failed, Ledger, OperationKind, parse_ledger
from torture.verdict.applications.transactions import Found, consult_transactions, parse_found
from torture.verdict.data_findings import Findings
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


def judged(story: Story, seen: Found, **how: Any) -> Findings:
    """What the oracle says, of one writer whose transactions have one order unless told otherwise."""
    ledger = ledger_of(story, writers=how.pop("writers", 1))
    return consult_transactions(ledger, seen, **({"has_one_order": True, "cut_ms": None} | how))


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
    findings = judged(story, seen, cut_ms=100.0)
    assert (findings.verdict, findings.lost) == (verdict, lost)
    assert bool(findings.reasons) is (verdict is not Verdict.INTACT or ("failed", 4) in story)


def test_what_its_checks_say_comes_first_and_leaves_room_for_what_is_gone() -> None:
    lines = tuple(f"page {number} is broken" for number in range(40))
    told = judged(TWO, found(complaints=lines)).reasons
    assert told[0] == "its own check: page 0 is broken"
    assert "its own checks say 35 lines more" in told
    assert "transaction 2 is gone" in told


def test_what_is_settled_once_is_not_settled_again_later() -> None:
    """Else another writer's lazy transaction would have to be there although nobody settled it."""
    story: Story = [
        ("lazy", 1), ("done", 1), ("settle", 3), ("done", 3),
        ("lazy", 4), ("done", 4), ("settle", 5), ("done", 5),
    ]  # fmt: skip
    findings = judged(story, found(1), writers=2)
    assert (findings.verdict, findings.lost) == (Verdict.INTACT, 0)


SETTLED_APART: Story = [
    ("lazy", 2), ("done", 2), ("settle", 4), ("done", 4), ("lazy", 6), ("done", 6),
    ("lazy", 1), ("done", 1), ("settle", 3), ("done", 3),
]  # fmt: skip
"""Even ones are of one writer, odd ones of another: 6 is not settled, 2 and 1 are, 1 after 6 was done."""
NEVER_SETTLED: Story = [
    ("lazy", 2), ("done", 2), ("lazy", 4), ("done", 4), ("lazy", 1), ("done", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("story", "whole", "in_one_order", "in_orders_of_their_own", "lost"),
    [
        (SETTLED_APART, [2, 6, 1], Verdict.INTACT, Verdict.INTACT, 0),
        (SETTLED_APART, [2, 1], Verdict.CORRUPTED, Verdict.INTACT, 0),
        (SETTLED_APART, [2, 6], Verdict.ROLLED_BACK, Verdict.ROLLED_BACK, 1),
        (SETTLED_APART, [2], Verdict.ROLLED_BACK, Verdict.ROLLED_BACK, 1),
        (SETTLED_APART, [], Verdict.ROLLED_BACK, Verdict.ROLLED_BACK, 2),
        (SETTLED_APART, [1], Verdict.CORRUPTED, Verdict.CORRUPTED, 1),
        (SETTLED_APART, [6, 1], Verdict.CORRUPTED, Verdict.CORRUPTED, 1),
        (NEVER_SETTLED, [1], Verdict.CORRUPTED, Verdict.INTACT, 0),
        (NEVER_SETTLED, [4], Verdict.CORRUPTED, Verdict.CORRUPTED, 0),
        (NEVER_SETTLED, [4, 1], Verdict.CORRUPTED, Verdict.CORRUPTED, 0),
        ([*NEVER_SETTLED, ("begin", 3), ("done", 3)], [1, 3], Verdict.CORRUPTED, Verdict.INTACT, 0),
    ],
)
def test_what_is_not_settled_goes_with_what_came_after_it_in_its_own_order(
    story: Story,
    whole: list[int],
    in_one_order: Verdict,
    in_orders_of_their_own: Verdict,
    lost: int,
) -> None:
    """Durable ones, which are `lost`, have the disk's one order whatever log they are in."""
    for has_one_order, verdict in ((True, in_one_order), (False, in_orders_of_their_own)):
        findings = judged(story, found(*whole), writers=2, has_one_order=has_one_order)
        assert (findings.verdict, findings.lost) == (verdict, lost)


def test_a_rollback_of_logs_of_their_own_is_measured_from_what_was_durable() -> None:
    """Not from 6, which could be gone without any."""
    findings = judged(SETTLED_APART, found(2), writers=2, has_one_order=False, cut_ms=100.0)
    assert findings.rollback_ms == 100.0 - 90.0


def test_a_rollback_is_measured_from_the_first_that_is_gone_to_the_cut() -> None:
    findings = judged(TWO, found(1), cut_ms=100.0)
    assert findings.rollback_ms == 100.0 - 30.0


def test_a_transaction_that_ends_and_never_began_is_no_ledger() -> None:
    with pytest.raises(UnreadableError, match="had not begun"):
        judged([("done", 1)], found())


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


def _ends_that_explain(story: Story, whole: frozenset[int]) -> list[int]:
    """The moments up to which a log of all these transactions would have left just these."""
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


def _verdict_of_one_order(story: Story, whole: frozenset[int]) -> Verdict:
    fitting = _ends_that_explain(story, whole)
    if not fitting:
        return Verdict.CORRUPTED
    return Verdict.INTACT if max(fitting) > _last_durable(story) else Verdict.ROLLED_BACK


def _own_story(story: Story, writer: int) -> Story:
    """What a writer did, at its places in the story; what the other did is nothing to be found."""
    return [(word, seq) if seq % 2 == writer else ("settle", -1) for word, seq in story]


def _verdict_of_own_orders(story: Story, whole: frozenset[int]) -> Verdict:
    """A crash leaves each log up to an end of its own: after what was durable by then, if not later."""
    crashes = []
    for crash in range(len(story) + 1):
        explained = []
        for writer in (0, 1):
            own = _own_story(story, writer)
            ends = _ends_that_explain(own, frozenset(seq for seq in whole if seq % 2 == writer))
            durable = _last_durable(own[:crash])
            explained.append(any(durable < end <= crash for end in ends))
        if all(explained):
            crashes.append(crash)
    if not crashes:
        return Verdict.CORRUPTED
    return Verdict.INTACT if crashes[-1] == len(story) else Verdict.ROLLED_BACK


@pytest.mark.parametrize(
    ("has_one_order", "verdict_of"),
    [(True, _verdict_of_one_order), (False, _verdict_of_own_orders)],
    ids=["one order", "own orders"],
)
@given(story=stories(), data=st.data())
def test_the_verdict_is_that_of_all_moments_tried_one_by_one(
    has_one_order: bool,
    verdict_of: Callable[[Story, frozenset[int]], Verdict],
    story: Story,
    data: st.DataObject,
) -> None:
    writing = sorted({seq for word, seq in story if word in ("begin", "lazy")})
    gone = data.draw(st.sets(st.sampled_from(writing))) if writing else set()
    whole = frozenset(writing) - gone
    findings = judged(story, found(*whole), writers=2, has_one_order=has_one_order)
    assert findings.verdict is verdict_of(story, whole)


@given(stories(), st.data())
def test_what_a_crash_may_leave_of_logs_of_their_own_is_intact(
    story: Story, data: st.DataObject
) -> None:
    """Each log ends somewhere after what it settled last."""
    whole: set[int] = set()
    for writer in (0, 1):
        own = _own_story(story, writer)
        end = data.draw(st.integers(_last_durable(own) + 1, len(story)))
        whole |= {seq for word, seq in own[:end] if word in ("begin", "lazy")}
    findings = judged(story, found(*whole), writers=2, has_one_order=False)
    assert (findings.verdict, findings.lost) == (Verdict.INTACT, 0)


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

"""The oracle of applications: what it says of each outcome, and what it reads.

The oracle of applications, against all moments tried one by one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import begun
from torture.facts.evidence.ledger import Begin, Done, Failed, Ledger, OperationKind, parse_ledger
from torture.oracles.verdict.applications.transactions import (
    Found,
    Unfinished,
    consult_transactions,
    parse_found,
)
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.judgement import Findings

Story = list[tuple[str, int]]
"""Words and transactions: `begin`, `lazy`, `settle` begin one, `done` and `failed` end it."""

_KINDS = {
    "begin": OperationKind.TRANSACTION,
    "settle": OperationKind.TRANSACTION,
    "lazy": OperationKind.LAZY_TRANSACTION,
}


def subject_of(seq: int) -> dict[str, Any]:
    """Its subject: every fourth has the same thing, so that each of two writers has two."""
    return {"thing": seq % 4, "sizes": [1]}


def ledger_of(story: Story, *, writers: int = 1) -> Ledger:
    events: list[Begin | Done | Failed] = []
    for place, (word, seq) in enumerate(story):
        t_ms = 10.0 * place
        if word in _KINDS:
            what = {"settle": True} if word == "settle" else subject_of(seq)
            events.append(
                begun(t_ms, seq, _KINDS[word], writer=seq % writers, blocks=(), what=what)
            )
        elif word == "done":
            events.append(Done(t_ms=t_ms, seq=seq))
        else:
            events.append(Failed(t_ms=t_ms, seq=seq, errno=5, call="COMMIT"))
    return Ledger(events=tuple(events))


def found(*whole: int, **changes: Any) -> Found:
    seen: dict[str, Any] = {"trial": 1, "mode": "application", "parts": {}, "complaints": ()}
    seen["refused"] = ""
    return Found(whole=frozenset(whole), **(seen | changes))


def judged(story: Story, seen: Found, **how: Any) -> Findings:
    """The oracle's judgement of one writer, whose transactions have one order by default."""
    ledger = ledger_of(story, writers=how.pop("writers", 1))
    return consult_transactions(ledger, seen, **({"has_one_order": True, "cut_ms": None} | how))


def amid(seq: int, *, is_new: bool = False, is_old: bool = False) -> Unfinished:
    return Unfinished(
        seq=seq, what={"thing": seq % 4}, state="unpacked", is_new=is_new, is_old=is_old
    )


TWO: Story = [("begin", 1), ("done", 1), ("begin", 2), ("done", 2), ("begin", 3)]
LAZY: Story = [
    ("lazy", 1), ("done", 1), ("settle", 2), ("done", 2), ("lazy", 3), ("done", 3), ("lazy", 4),
]  # fmt: skip
UPGRADE: Story = [("begin", 1), ("done", 1), ("begin", 2), ("done", 2), ("begin", 5)]
"""Of what 1 did there is a newer one under way."""
OLD_1 = (amid(1, is_old=True),)
"""1, of which the newer one is amid its work."""
UPGRADED: Story = [*UPGRADE, ("done", 5), ("begin", 9)]


@pytest.mark.parametrize(
    ("story", "seen", "verdict", "lost"),
    [
        (TWO, found(1, 2), Verdict.INTACT, 0),
        (TWO, found(1, 2, 3), Verdict.INTACT, 0),
        (TWO, found(1), Verdict.ROLLED_BACK, 1),
        (TWO, found(), Verdict.ROLLED_BACK, 2),
        (TWO, found(2), Verdict.CORRUPTED, 1),
        (TWO, found(1, 2, 9), Verdict.CORRUPTED, 0),
        (TWO, found(1, parts={2: "rows [0] of 2"}), Verdict.CORRUPTED, 1),
        (TWO, found(1, 2, parts={3: "rows [0] of 2"}), Verdict.CORRUPTED, 0),
        (TWO, found(1, 2, complaints=("row 3 missing from index",)), Verdict.CORRUPTED, 0),
        (TWO, found(refused="malformed"), Verdict.UNREPAIRABLE, 2),
        (TWO, found(1, refused="repository 1"), Verdict.UNREPAIRABLE, 1),
        (TWO, found(parts={1: "half"}, refused="repository 1"), Verdict.UNREPAIRABLE, 2),
        (LAZY, found(1, 3), Verdict.INTACT, 0),
        (LAZY, found(1), Verdict.INTACT, 0),
        (LAZY, found(1, 3, 4), Verdict.INTACT, 0),
        (LAZY, found(1, 4), Verdict.CORRUPTED, 0),
        (LAZY, found(), Verdict.ROLLED_BACK, 1),
        (LAZY, found(3), Verdict.CORRUPTED, 1),
        (LAZY, found(3, parts={1: "rows [0] of 2"}), Verdict.CORRUPTED, 1),
        (LAZY, found(1, parts={3: "rows [0] of 2"}), Verdict.CORRUPTED, 0),
        ([*LAZY, ("failed", 4)], found(1, 3), Verdict.INTACT, 0),
        (UPGRADE, found(2, unfinished=OLD_1), Verdict.INTACT, 0),
        (UPGRADE, found(1, 2, unfinished=(amid(5, is_new=True),)), Verdict.INTACT, 0),
        (UPGRADE, found(1, 2, unfinished=(amid(5, is_old=True),)), Verdict.CORRUPTED, 0),
        (UPGRADE, found(2, unfinished=(amid(1, is_new=True),)), Verdict.CORRUPTED, 1),
        (UPGRADE, found(unfinished=OLD_1), Verdict.CORRUPTED, 1),
        (UPGRADE, found(1, unfinished=(amid(2, is_old=True),)), Verdict.CORRUPTED, 1),
        (UPGRADE, found(1, unfinished=(amid(2, is_new=True),)), Verdict.ROLLED_BACK, 1),
        (UPGRADE, found(1, unfinished=(amid(2),)), Verdict.CORRUPTED, 1),
        (UPGRADE, found(1, 2, unfinished=(amid(7, is_new=True),)), Verdict.CORRUPTED, 0),
        ([*UPGRADE, ("failed", 5)], found(2, unfinished=OLD_1), Verdict.INTACT, 0),
        (UPGRADED, found(1, 2, unfinished=(amid(5, is_old=True),)), Verdict.INTACT, 0),
        (UPGRADED, found(1, 2, unfinished=(amid(5, is_new=True),)), Verdict.ROLLED_BACK, 1),
        (UPGRADED, found(2, unfinished=OLD_1), Verdict.ROLLED_BACK, 1),
        (UPGRADED, found(2, 5, unfinished=OLD_1), Verdict.CORRUPTED, 1),
        (UPGRADED, found(1, unfinished=(amid(5, is_old=True),)), Verdict.CORRUPTED, 1),
        (UPGRADE, found(2, unfinished=OLD_1, refused="root 1"), Verdict.UNREPAIRABLE, 0),
        (UPGRADE, found(2, parts={1: "f0"}, unfinished=OLD_1), Verdict.CORRUPTED, 1),
        (UPGRADED, found(2, 9, unfinished=OLD_1), Verdict.CORRUPTED, 1),
    ],
)
def test_each_outcome_has_its_verdict(
    story: Story, seen: Found, verdict: Verdict, lost: int
) -> None:
    findings = judged(story, seen, cut_ms=100.0)
    assert (findings.verdict, findings.lost) == (verdict, lost)
    has_failed = any(word == "failed" for word, _ in story)
    assert bool(findings.reasons) is (verdict is not Verdict.INTACT or has_failed)


def test_a_damaged_transaction_is_lost_and_not_gone() -> None:
    """As a torn block of the ledger's load is: what was acknowledged was all of it."""
    findings = judged(TWO, found(parts={2: "rows [0] of 2", 3: "rows [0] of 2"}))
    assert (findings.lost, findings.missing, findings.torn) == (2, 1, 2)
    assert "transaction 1 is gone" in findings.reasons
    assert "transaction 2 is gone" not in findings.reasons


def test_of_several_one_that_is_refused_says_nothing_of_the_others() -> None:
    """Nor are its own gone: that is unknown."""
    seen = found(1, parts={3: "half"}, complaints=("row 2",), refused="repository 1: bad object")
    findings = judged(TWO, seen)
    assert (findings.lost, findings.missing, findings.torn) == (1, 1, 1)
    assert findings.reasons == (
        "the application cannot be used: repository 1: bad object",
        "its own check: row 2",
        "transaction 3 is damaged: half",
    )


def test_a_wrongly_half_kept_transaction_is_lost_and_is_not_gone() -> None:
    for changes in ({}, {"refused": "root 1: malformed"}):
        findings = judged(UPGRADE, found(2, unfinished=(amid(1, is_new=True),), **changes))
        assert (findings.lost, findings.missing, findings.torn) == (1, 0, 0)
        assert "transaction 1 is half there: 1 is unpacked" in findings.reasons
        assert "transaction 1 is gone" not in findings.reasons


@pytest.mark.parametrize(
    ("has_one_order", "verdict"), [(True, Verdict.CORRUPTED), (False, Verdict.INTACT)]
)
def test_a_lazy_transaction_may_be_half_there_where_its_log_ends(
    has_one_order: bool, verdict: Verdict
) -> None:
    story: Story = [("lazy", 2), ("done", 2), ("begin", 1), ("done", 1)]
    seen = found(1, unfinished=(amid(2, is_new=True),))
    assert judged(story, seen, writers=2, has_one_order=has_one_order).verdict is verdict


def test_a_half_transaction_that_never_began_is_foreign() -> None:
    findings = judged(UPGRADE, found(1, 2, unfinished=(amid(7, is_new=True),)))
    assert (findings.lost, findings.foreign) == (0, 1)
    assert "transaction 7 is there, but never began" in findings.reasons


def test_the_result_of_its_checks_comes_first_and_leaves_room_for_losses() -> None:
    lines = tuple(f"page {number} is broken" for number in range(40))
    reasons = judged(TWO, found(complaints=lines)).reasons
    assert reasons[0] == "its own check: page 0 is broken"
    assert "its own checks printed 35 more lines" in reasons
    assert "transaction 2 is gone" in reasons


SETTLED_APART: Story = [
    ("lazy", 2), ("done", 2), ("settle", 4), ("done", 4), ("lazy", 6), ("done", 6),
    ("lazy", 1), ("done", 1), ("settle", 3), ("done", 3),
]  # fmt: skip
"""Even ones are of one writer, odd ones of another, whose 3 comes after 6."""
BESIDE: Story = [
    ("lazy", 2), ("done", 2), ("begin", 1), ("lazy", 4), ("done", 4), ("done", 1),
]  # fmt: skip
"""When 1 was durable 4 was done, and may come behind it in a log all the same."""
NEVER_SETTLED: Story = [
    ("lazy", 2), ("done", 2), ("lazy", 4), ("done", 4), ("lazy", 1), ("done", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("story", "whole", "of_one_order", "of_own_orders"),
    [
        (SETTLED_APART, [2, 6, 1], (Verdict.INTACT, 0), (Verdict.INTACT, 0)),
        (SETTLED_APART, [2, 1], (Verdict.CORRUPTED, 1), (Verdict.INTACT, 0)),
        (SETTLED_APART, [2, 6], (Verdict.ROLLED_BACK, 1), (Verdict.ROLLED_BACK, 1)),
        (SETTLED_APART, [2], (Verdict.ROLLED_BACK, 2), (Verdict.ROLLED_BACK, 1)),
        (SETTLED_APART, [], (Verdict.ROLLED_BACK, 3), (Verdict.ROLLED_BACK, 2)),
        (SETTLED_APART, [1], (Verdict.CORRUPTED, 2), (Verdict.CORRUPTED, 1)),
        (SETTLED_APART, [6, 1], (Verdict.CORRUPTED, 1), (Verdict.CORRUPTED, 1)),
        (BESIDE, [2, 1, 4], (Verdict.INTACT, 0), (Verdict.INTACT, 0)),
        (BESIDE, [2, 1], (Verdict.INTACT, 0), (Verdict.INTACT, 0)),
        (BESIDE, [1], (Verdict.CORRUPTED, 1), (Verdict.INTACT, 0)),
        (BESIDE, [2, 4], (Verdict.ROLLED_BACK, 1), (Verdict.ROLLED_BACK, 1)),
        (BESIDE, [2], (Verdict.ROLLED_BACK, 1), (Verdict.ROLLED_BACK, 1)),
        (BESIDE, [], (Verdict.ROLLED_BACK, 2), (Verdict.ROLLED_BACK, 1)),
        (NEVER_SETTLED, [1], (Verdict.CORRUPTED, 0), (Verdict.INTACT, 0)),
        (NEVER_SETTLED, [4], (Verdict.CORRUPTED, 0), (Verdict.CORRUPTED, 0)),
        (NEVER_SETTLED, [4, 1], (Verdict.CORRUPTED, 0), (Verdict.CORRUPTED, 0)),
    ],
)
def test_a_lazy_transaction_is_settled_and_goes_with_later_ones_of_its_order(
    story: Story,
    whole: list[int],
    of_one_order: tuple[Verdict, int],
    of_own_orders: tuple[Verdict, int],
) -> None:
    """Durable ones, which are counted, have the disk's one order whatever log they are in."""
    for has_one_order, expected in ((True, of_one_order), (False, of_own_orders)):
        findings = judged(story, found(*whole), writers=2, has_one_order=has_one_order)
        assert (findings.verdict, findings.lost) == expected


def test_a_transaction_settled_once_is_not_settled_again_later() -> None:
    """Else another writer's lazy transaction would have to be there although unsettled."""
    story: Story = [
        ("lazy", 1), ("done", 1), ("settle", 3), ("done", 3),
        ("lazy", 4), ("done", 4), ("settle", 5), ("done", 5),
    ]  # fmt: skip
    findings = judged(story, found(1), writers=2, has_one_order=False)
    assert (findings.verdict, findings.lost) == (Verdict.INTACT, 0)


@pytest.mark.parametrize("has_one_order", [True, False])
def test_a_rollback_is_measured_from_the_last_durable_transaction(has_one_order: bool) -> None:
    """Not from 2, which is gone as well and was not durable until then."""
    story: Story = [("lazy", 2), ("done", 2), ("begin", 1), ("settle", 4), ("done", 4), ("done", 1)]
    seen, orders = found(), {"writers": 2, "has_one_order": has_one_order}
    assert judged(story, seen, cut_ms=100.0, **orders).rollback_ms == 100.0 - 40.0


def test_a_rollback_is_measured_from_the_first_that_is_gone_to_the_cut() -> None:
    assert judged(TWO, found(1), cut_ms=100.0).rollback_ms == 100.0 - 30.0


def test_a_transaction_that_ends_and_never_began_is_no_ledger() -> None:
    with pytest.raises(UnreadableError, match="had not begun"):
        judged([("done", 1)], found())


GOOD = {
    "trial": 1, "mode": "application", "whole": [1], "parts": {"2": "half"}, "complaints": ["x"],
    "refused": "", "complete": True,
}  # fmt: skip
HALF = {"seq": 7, "what": {"package": "p"}, "state": "unpacked", "is_new": True, "is_old": False}


def test_a_read_back_has_the_fields_it_should() -> None:
    seen = parse_found(json.dumps(GOOD))
    assert (seen.whole, seen.parts, seen.complaints) == (frozenset({1}), {2: "half"}, ("x",))
    assert seen.unfinished == ()
    (half,) = parse_found(json.dumps(GOOD | {"unfinished": [HALF]})).unfinished
    assert (half.seq, half.what, half.state) == (7, {"package": "p"}, "unpacked")
    assert (half.is_new, half.is_old, half.words) == (True, False, "p is unpacked")


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", json.dumps(GOOD)[:-9], json.dumps(GOOD | {"complete": False}),
        json.dumps(GOOD | {"whole": "1"})[:-1], json.dumps(GOOD | {"whole": ["one"]}),
        json.dumps(GOOD | {"parts": [2]}), json.dumps(GOOD | {"parts": {"two": "half"}}),
        json.dumps(GOOD | {"unfinished": [7]}), json.dumps(GOOD | {"unfinished": [HALF | {"is_old": 1}]}),
    ],
)  # fmt: skip
def test_one_that_is_cut_off_or_garbled_is_no_evidence(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_found(text)


def test_the_ledger_keeps_the_content_of_a_transaction() -> None:
    line = (
        b'{"event":"begin","t_ms":1,"seq":4,"writer":0,"op":"lazy-transaction","file":0,"blocks":[],'
        b'"size":0,"what":{"sizes":[5]}}\n'
    )
    (begin,) = parse_ledger(line).events
    assert isinstance(begin, Begin)
    assert begin.what == {"sizes": [5]}
    assert not begin.kind.is_durable
    assert OperationKind.TRANSACTION.is_durable


Halves = tuple[Unfinished, ...]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """The operations of two writers, each one at a time."""
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


class Model:
    """The promises of a story, by sets alone."""

    def __init__(self, story: Story, *, has_one_order: bool) -> None:
        self.story = story
        self.words = {seq: word for word, seq in story if word != "done"}
        self._has_one_order = has_one_order

    def begun(self, moment: int) -> set[int]:
        """The transactions that could be there by then."""
        return {seq for word, seq in self.story[:moment] if word in ("begin", "lazy")}

    def before(self, seq: int) -> set[int]:
        """The transactions before it in its log, however that orders what is under way at once."""
        past = self.story[: self.story.index((self.words[seq], seq))]
        done = {other for word, other in past if word == "done" and self.words[other] != "settle"}
        return {other for other in done if self._has_one_order or other % 2 == seq % 2}

    def durable(self, moment: int) -> set[int]:
        """The transactions that may not be gone by then."""
        done = {seq for word, seq in self.story[:moment] if word == "done"}
        durable = {seq for seq in done if self.words[seq] != "lazy"}
        settled = {seq for one in durable for seq in self.before(one)}
        return settled | {seq for seq in durable if self.words[seq] == "begin"}

    def next_of(self, seq: int) -> int | None:
        """The next transaction on the same thing."""
        writing = [other for word, other in self.story if word in ("begin", "lazy")]
        later = writing[writing.index(seq) + 1 :]
        return next((other for other in later if subject_of(other) == subject_of(seq)), None)

    def is_so(self, one: Unfinished, amid: set[int]) -> bool:
        """Whether a crash amid one of these may leave it so."""
        return (one.is_new and one.seq in amid) or (one.is_old and self.next_of(one.seq) in amid)

    def amid(self, moment: int, whole: set[int]) -> set[int]:
        """The transactions that may be half there by then."""
        return self.begun(moment) - self.durable(moment) - whole

    def verdict(self, whole: set[int], unfinished: Halves) -> Verdict:
        """That of the latest moment at which a crash leaves just these."""
        there = whole | {one.seq for one in unfinished}
        passed = {other for seq in whole for other in self.before(seq)}
        fitting = [
            moment
            for moment in range(len(self.story) + 1)
            if self.durable(moment) <= there
            and whole <= self.begun(moment)
            and all(self.before(seq) <= there for seq in whole)
            and all(self.is_so(one, self.amid(moment, whole) - passed) for one in unfinished)
        ]
        if not fitting:
            return Verdict.CORRUPTED
        return Verdict.INTACT if fitting[-1] == len(self.story) else Verdict.ROLLED_BACK

    def lost(self, whole: set[int], unfinished: Halves) -> set[int]:
        """The losses that are not allowed, or are so as no later crash leaves them."""
        there = whole | {one.seq for one in unfinished}
        since = {
            one.seq: [m for m in range(len(self.story) + 1) if one.seq in self.durable(m)]
            for one in unfinished
        }
        halves = {
            one.seq
            for one in unfinished
            if not any(self.is_so(one, self.amid(moment, whole)) for moment in since[one.seq])
        }
        return self.durable(len(self.story)) - (there - halves)


@given(stories(), st.booleans(), st.data())
def test_the_verdict_is_that_of_all_moments_tried_one_by_one(
    story: Story, has_one_order: bool, data: st.DataObject
) -> None:
    model = Model(story, has_one_order=has_one_order)
    writing = sorted(model.begun(len(story)))
    gone = data.draw(st.sets(st.sampled_from(writing))) if writing else set()
    amid_of = st.builds(amid, st.sampled_from(writing), is_new=st.booleans(), is_old=st.booleans())
    unfinished = tuple(data.draw(st.lists(amid_of, max_size=2))) if writing else ()
    whole = set(writing) - gone - {one.seq for one in unfinished}
    seen = found(*whole, unfinished=unfinished)
    findings = judged(story, seen, writers=2, has_one_order=has_one_order)
    assert findings.verdict is model.verdict(whole, unfinished)
    assert findings.lost == len(model.lost(whole, unfinished))


@given(stories(), st.booleans(), st.data())
def test_a_log_as_a_crash_may_leave_it_is_intact(
    story: Story, has_one_order: bool, data: st.DataObject
) -> None:
    """Each has its place in a log between its begin and its end; the log ends behind what was synced."""
    words = {seq: word for word, seq in story if word != "done"}
    begun = {seq: place for place, (word, seq) in enumerate(story) if word != "done"}
    done = {seq: place for place, (word, seq) in enumerate(story) if word == "done"}
    places = {
        seq: data.draw(st.integers(first, done.get(seq, len(story))))
        for seq, first in begun.items()
    }
    whole: set[int] = set()
    for writers in [(0, 1)] if has_one_order else [(0,), (1,)]:
        log = sorted((seq for seq in begun if seq % 2 in writers), key=lambda seq: places[seq])
        synced = [n for n, seq in enumerate(log, 1) if seq in done and words[seq] != "lazy"]
        end = data.draw(st.integers(max(synced, default=0), len(log)))
        whole |= {seq for seq in log[:end] if words[seq] != "settle"}
    findings = judged(story, found(*whole), writers=2, has_one_order=has_one_order)
    assert (findings.verdict, findings.lost) == (Verdict.INTACT, 0)

"""When a call returned, by two clocks; data durable only later, and data that no group has yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, Story, uberblock, zil_block
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs
from torture.facts.axes.sync import Sync
from torture.oracles.audit.at_risk import AtRisk, Returned, returns_in
from torture.oracles.audit.invariants import Invariant
from vmimages.client.load.blocks import Encoder

MS = 1_000_000
AHEAD_MS = 700.0
"""The recording's clock is this far ahead of the guest's."""
BACK_MS = 2.0
"""The time an answer takes, and the time a line takes."""


def sends(story: Story, **line: object) -> int:
    """A line of the load, by the time of its sending; its mark is recorded a little later."""
    story.now_ns += int(BACK_MS * MS)
    sent_ms = (story.now_ns + len(story.events)) / MS - AHEAD_MS - BACK_MS
    return story.says(guest_ms=sent_ms, **line)


def asked(story: Story, seq: int) -> None:
    """A `begin` of one block, and an answer to it that the next line reports."""
    what = {"writer": 0, "op": "append", "file": 0, "blocks": [0], "size": 1, "what": {}}
    sends(story, event="begin", seq=seq, **what)


def returned_now(story: Story) -> float:
    """By the guest's clock."""
    return (story.now_ns + len(story.events)) / MS - AHEAD_MS


def block_of(operation: int) -> bytes:
    return zil_block() + Encoder(7).block(file=1, seq=operation, index=0)[:512]


def acquainted(story: Story) -> None:
    """Some lines and answers before: the clocks are known to a millisecond or so."""
    for seq in range(100, 104):
        mark = sends(story, event="done", seq=seq)
        heard_ms = story.events[mark].time_ns / MS - AHEAD_MS + BACK_MS
        story.now_ns += int(10 * MS)
        sends(story, event="end", stuck=[], answered_seq=seq, answered_ms=heard_ms)


def test_a_return_is_between_the_bounds_of_the_clocks(story: Story) -> None:
    acquainted(story)
    asked(story, 1)
    at_ns = story.now_ns + len(story.events)
    returned_ms = returned_now(story)
    story.now_ns += 20 * MS
    sends(story, event="done", seq=1, returned_ms=returned_ms)
    found = returns_in(story.recorded(), cut=len(story.events) - 1)
    assert found.keys() == {1}
    assert found[1].earliest_ns <= at_ns <= found[1].latest_ns
    assert found[1].latest_ns - found[1].earliest_ns < 5 * MS


def test_without_an_answer_or_with_contradicting_clocks_no_return_is_known(story: Story) -> None:
    asked(story, 1)
    sends(story, event="done", seq=1, returned_ms=returned_now(story))
    assert returns_in(story.recorded(), cut=len(story.events) - 1) == {}
    acquainted(story)
    sends(story, event="done", seq=2, returned_ms=1.0, answered_seq=103, answered_ms=-1e6)
    assert returns_in(story.recorded(), cut=len(story.events) - 1) == {}


def test_an_answer_to_a_writers_first_operation_is_ignored(story: Story) -> None:
    """Its number is answered twice: at its beginning and at its end."""
    asked(story, 1)
    early_ms = returned_now(story) + BACK_MS
    story.now_ns += 30 * MS
    sends(story, event="done", seq=1, returned_ms=returned_now(story))
    sends(story, event="end", stuck=[], answered_seq=1, answered_ms=early_ms)
    assert returns_in(story.recorded(), cut=len(story.events) - 1) == {}


@settings(deadline=None)
@given(
    junk=st.lists(
        st.sampled_from([b"{", b"[]", b"7", b'{"event": 3, "seq": "x", "guest_ms": "y"}', b"\xff"])
    )
)
def test_unreadable_lines_are_ignored(junk: list[bytes], tmp_path_factory: object) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    story = Story(folder=tmp_path_factory.mktemp("s"))
    for line in junk:
        story.hears(line)
    assert returns_in(story.recorded(), cut=len(story.events) - 1) == {}


RETURNS = {
    "a block that was covered after the return is found": (
        "write=write 1, later 5, return, later 5, flush, later 10, done=tell, accuses done write"
    ),
    "one that was covered before is not": (
        "write 1, flush, later 5, return, later 15, tell, accuses"
    ),
    "a transaction group since vouches for it": (
        "write 1 on b, write uberblock:22, flush, later 5, return, later 5, flush b, tell, accuses"
    ),
    "a block written after the return is not due": (
        "write 1, flush, later 5, return, later 5, write 1, flush, tell, accuses"
    ),
    "between the clock bounds, within which the flush ends, nothing is reported": (
        "write 1, later 5, return, flush, tell, accuses"
    ),
}


@pytest.mark.parametrize("scene", RETURNS.values(), ids=RETURNS)
def test_the_log_of_an_operation_is_covered_when_its_call_returns(scene: str, story: Story) -> None:
    """With `return` for the return of its call, and `tell` for the line that reports it."""
    returned_ms: list[float] = []

    def late(story: Story) -> list[int]:
        found = story.audit_of_all(sync=Sync.ALWAYS).findings
        own = [one for one in found if one.invariant is Invariant.RETURNED_IS_DURABLE]
        return [event for one in own for event in (one.event, *one.uncovered)]

    verbs: Verbs = {
        "return": lambda: returned_ms.append(returned_now(story)),
        "tell": lambda: sends(story, event="done", seq=1, returned_ms=returned_ms[0]),
    }
    acquainted(story)
    asked(story, 1)
    Stage(story, accused=late, contents={"1": block_of(1)}, verbs=verbs).play(scene)
    [returned] = returns_in(story.recorded(), cut=len(story.events) - 1).values()
    assert isinstance(returned, Returned)


# Acknowledged operations that no transaction group has, and how young they are in the intent log.


@pytest.fixture
def risked(tmp_path: Path) -> Story:
    risked = Story(folder=tmp_path)
    risked.write(BLOCK, offset=1 << 24)
    risked.flush()
    risked.write(uberblock(4), offset=1 << 20)
    risked.flush()
    return risked


ACKNOWLEDGED = "begin 1, write 1 at 64, flush, done 1"
AT_RISK = {
    "operations that began after the last committed group are in none": (
        f"{ACKNOWLEDGED}, begin 2, write 2 at 64, flush, done 2, later 40",
        AtRisk(lately=2, uncommitted=2, logged_ms=40),
    ),
    "a later group has them": (
        f"{ACKNOWLEDGED}, write data at 32, group 5",
        AtRisk(lately=1, uncommitted=0, logged_ms=None),
    ),
    "a group whose uberblock is not covered commits nothing": (
        f"{ACKNOWLEDGED}, write data at 32, flush, write uberblock:5 at 1",
        AtRisk(lately=1, uncommitted=1, logged_ms=0),
    ),
    "an operation that began beside a group under way is in a later one": (
        f"write data at 32, {ACKNOWLEDGED}, write uberblock:5 at 1, flush",
        AtRisk(lately=1, uncommitted=1, logged_ms=0),
    ),
    "a block of the log without a flush is as old as its write": (
        "begin 1, write 1 at 64, done 1, later 30",
        AtRisk(lately=1, uncommitted=1, logged_ms=30),
    ),
    "without a known block in the log its age is unknown": (
        "begin 1, done 1, later 2000",
        AtRisk(lately=0, uncommitted=1, logged_ms=None),
    ),
}


@pytest.mark.parametrize(("scene", "at_risk"), AT_RISK.values(), ids=AT_RISK)
def test_an_acknowledged_operation_is_at_risk_until_a_group_has_it(
    scene: str, at_risk: AtRisk, risked: Story
) -> None:
    def seen(risked: Story) -> list[int]:
        assert risked.audit_of_all(sync=Sync.STANDARD).at_risk == at_risk
        return []

    contents = {str(seq): block_of(seq) for seq in (1, 2)}
    Stage(risked, accused=seen, contents=contents).play(f"{scene}, accuses")

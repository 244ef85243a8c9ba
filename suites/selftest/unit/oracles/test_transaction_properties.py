"""The oracle of applications, against all moments tried one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.oracles.test_transactions import Story, amid, found, judged, subject_of
from torture.oracles.verdict.applications.transactions import Unfinished
from torture.oracles.verdict.guarantee import Verdict

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

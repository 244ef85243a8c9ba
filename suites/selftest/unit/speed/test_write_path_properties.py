"""The counted write path of random recordings, against a slow count."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, uberblock, zil_block
from torture.facts.recording.events import Event, Kind
from torture.features.speed.jobs.write_path import (
    ClientWork,
    JobSpan,
    PathPlace,
    PoolShape,
    WritePath,
    write_path_of,
)

MS = 1_000_000
PAYLOADS = {
    PathPlace.ZIL_POOL: zil_block(),
    PathPlace.DATA: BLOCK,
    PathPlace.METADATA: METADATA,
    PathPlace.UBERBLOCK: uberblock(7),
}

steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "flush", "complete", "complete", "wait"]),
        st.sampled_from(sorted(PAYLOADS)),
        st.integers(0, 1),
        st.integers(0, 9),
    ),
    max_size=30,
)


def story_of(folder: Path, of: list[tuple[str, PathPlace, int, int]]) -> Story:
    story = Story(folder=folder)
    open_requests: list[int] = []
    for verb, place, disk, number in of:
        if verb == "write":
            open_requests.append(story.submit(PAYLOADS[place], disk=disk))
        elif verb == "flush":
            open_requests.append(story.begin_flush(disk=disk))
        elif verb == "wait":
            story.now_ns += number * MS
        elif open_requests:
            story.complete(open_requests.pop(number % len(open_requests)))
    return story


@given(
    steps, st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)), st.integers(0, 30)
)
def test_counts_and_parts_are_those_of_a_slow_count(
    some: list[tuple[str, PathPlace, int, int]], numbers: tuple[int, int, int], run_ms: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = story_of(Path(folder), some)
        first, ended, last = sorted(min(number, len(story.events) - 1) for number in numbers)
        span = JobSpan(first=first, ended=ended, last=last, slow_motion=1, settled_in=0)
        work = ClientWork(operations=3, bytes=3, run_ms=run_ms, warm_up_share=0.5, sync_ms=10)
        path = write_path_of(story.recorded(), span, work, PoolShape(logs=("b",)))
    slow = SlowCount(story=story, span=span, run_ms=run_ms)
    for place, payload in PAYLOADS.items():
        disks = (0,) if place is PathPlace.ZIL_POOL else (0, 1)
        must_be(path, str(place), slow.writes(payload, disks), slow)
    must_be(path, "zil-slog", slow.writes(zil_block(), (1,)), slow)
    assert path.flushes_per_operation == pytest.approx(slow.flushes_in_run() / 3, abs=1e-5)
    assert path.client_operations == pytest.approx(3 * slow.whole(), abs=1e-5)
    assert path.client_bytes == pytest.approx(3 * slow.whole(), abs=1e-5)
    assert path.wait is not None
    wait = path.wait
    parts = (wait.zil_ms, wait.flush_ms, wait.both_ms, wait.rest_ms)
    assert parts == pytest.approx(slow.parts(10), abs=1e-4)


@dataclass(frozen=True, kw_only=True)
class SlowCount:
    """The oracle: it looks at every event for every request, and at every span between two events."""

    story: Story
    span: JobSpan
    run_ms: int

    @property
    def within(self) -> list[Event]:
        return [one for one in self.story.events if self.span.first < one.seq <= self.span.last]

    def writes(self, payload: bytes, disks: tuple[int, ...]) -> list[Event]:
        return [
            one for one in self.within
            if one.kind is Kind.WRITE_SUBMIT and one.disk in disks
            and self.story._data[one.reference : one.reference + one.length] == payload
        ]  # fmt: skip

    def flushes(self, *, disk: int) -> list[Event]:
        return [one for one in self.within if one.kind is Kind.FLUSH_SUBMIT and one.disk == disk]

    def spans(self, requests: list[Event]) -> list[tuple[int, int]]:
        """Of those that were submitted before the job's end, and completed."""
        return [
            (one.time_ns, done.time_ns)
            for one in requests
            for done in self.within
            if one.seq <= self.span.ended and done.reference == one.seq
        ]

    @property
    def log(self) -> list[tuple[int, int]]:
        return self.spans(self.writes(zil_block(), (0, 1)))

    @property
    def flushed(self) -> list[tuple[int, int]]:
        first = min(start for start, _ in self.log)
        return [one for one in self.spans(self.flushes(disk=1)) if one[1] > first]

    def run(self) -> tuple[int, int]:
        end = max(end for _, end in self.log + self.flushed)
        return max(min(start for start, _ in self.log), end - self.run_ms * MS), end

    def whole(self) -> float:
        """The whole job by the run; 1.5 is the warm-up at the rate of the run."""
        if not self.log:
            return 1.5
        in_run = [one for one in self.log if one[1] > self.run()[0]]
        return len(self.log) / len(in_run) if in_run else 1.0

    def flushes_in_run(self) -> float:
        if self.log:
            return len([one for one in self.flushed if one[1] > self.run()[0]])
        return len([one for one in self.flushes(disk=1) if one.seq <= self.span.ended]) / 1.5

    def parts(self, mean_ms: float) -> tuple[float, ...]:
        if not self.log or self.run_ms == 0:
            return 0, 0, 0, mean_ms
        begin, end = self.run()
        ends = {moment for one in self.log + self.flushed for moment in one}
        shares = dict.fromkeys([(True, False), (False, True), (True, True), (False, False)], 0.0)
        for since, until in pairwise(sorted({begin, *(one for one in ends if one > begin)})):
            is_log = any(one[0] <= since and until <= one[1] for one in self.log)
            is_flushed = any(one[0] <= since and until <= one[1] for one in self.flushed)
            shares[is_log, is_flushed] += (until - since) / (end - begin) * mean_ms
        return tuple(shares.values())


def must_be(path: WritePath, name: str, own: list[Event], slow: SlowCount) -> None:
    """The place has exactly these writes, timed until the job's end."""
    if not own:
        assert name not in path.places
        return
    times = [(end - start) / MS for start, end in slow.spans(own)]
    traffic = path.places[name]
    assert (traffic.requests, traffic.bytes) == (len(own), sum(event.length for event in own))
    assert traffic.timed == len(times)
    assert traffic.sum_ms == pytest.approx(sum(times), abs=1e-5)
    assert traffic.median_ms == pytest.approx(median(times) if times else 0, abs=1e-5)

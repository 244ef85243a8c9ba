"""The counted write path, by hand-made recordings, and by random ones against a slow count."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, label, uberblock, zil_block
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.recording.events import Event, Kind
from torture.features.speed.jobs.write_path import (
    ClientWork,
    JobSpan,
    PathPlace,
    PoolShape,
    SyncWait,
    WritePath,
    places_of_writes,
    write_path_of,
)

MS = 1_000_000
MIB = 1 << 20
PLAIN = PoolShape()


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(folder=tmp_path)


def counted(
    story: Story,
    *,
    ended: int | None = None,
    slow_motion: float = 1,
    settled_in: float = 0,
    operations: int = 1,
    run_ms: float = 1000,
    sync_ms: float | None = 10,
    shape: PoolShape = PLAIN,
) -> WritePath:
    last = len(story.events) - 1
    span = JobSpan(
        first=0,
        ended=last if ended is None else ended,
        last=last,
        slow_motion=slow_motion,
        settled_in=settled_in,
    )
    work = ClientWork(
        operations=operations, bytes=operations * 4096, run_ms=run_ms, warm_up_share=0.5,
        sync_ms=sync_ms,
    )  # fmt: skip
    return write_path_of(story.recorded(), span, work, shape)


def later(story: Story, ms: float) -> None:
    """Let time pass; the number of an event is a nanosecond, too."""
    story.now_ns += round(ms * MS)


def spend(story: Story, request: int, ms: float) -> None:
    """Complete a request after this time."""
    later(story, ms)
    story.complete(request)


def test_each_write_counts_at_its_place(story: Story) -> None:
    for payload in (zil_block(), BLOCK, BLOCK, METADATA, uberblock(7), label()):
        story.write(payload)
    story.write(zil_block(), disk=1)
    places = counted(story, shape=PoolShape(logs=("b",))).places
    assert {name: (traffic.requests, traffic.bytes) for name, traffic in places.items()} == {
        "zil-pool": (1, 4096),
        "zil-slog": (1, 4096),
        "data": (2, 2 * 16384),
        "metadata": (1, 4096),
        "uberblock": (2, 1024 + len(label())),
    }


def test_a_synchronous_write_waits_for_log_and_flush(story: Story) -> None:
    for _ in range(2):
        spend(story, story.submit(zil_block()), 3)
        spend(story, story.begin_flush(), 5)
        later(story, 2)
    story.now_ns -= 2 * MS
    path = counted(story, operations=2, sync_ms=9)
    assert path.flushes_per_operation == 1
    assert path.wait is not None
    # 16 of 18 ms were spent on the disk: the job ends with its last flush
    assert path.wait.zil_ms == pytest.approx(9 * 6 / 18, rel=1e-4)
    assert path.wait.flush_ms == pytest.approx(9 * 10 / 18, rel=1e-4)
    assert path.wait.rest_ms == pytest.approx(9 * 2 / 18, rel=1e-4)
    assert path.places["zil-pool"].median_ms == pytest.approx(3, rel=1e-4)
    assert path.flushes["a"].sum_ms == pytest.approx(10, rel=1e-4)


def test_moments_of_log_and_flush_together_are_a_part_of_their_own(story: Story) -> None:
    """A flush from before, 2 ms of it alone; the log's write, 3 ms of it beside a flush of 4 ms."""
    early = story.begin_flush()
    later(story, 2)
    write = story.submit(zil_block())
    story.complete(early)
    later(story, 2)
    flush = story.begin_flush()
    later(story, 3)
    story.complete(write)
    later(story, 1)
    story.complete(flush)
    ended = len(story.events) - 1
    spend(story, story.submit(zil_block()), 50)
    wait = counted(story, ended=ended, sync_ms=6).wait
    assert wait is not None
    parts = (wait.zil_ms, wait.flush_ms, wait.both_ms, wait.rest_ms)
    assert parts == pytest.approx((2, 1, 3, 0), abs=1e-4)


def test_the_warm_up_counts_for_bytes_and_not_for_flushes(story: Story) -> None:
    """Three equal operations of 10 ms; fio counted the last two, in 20 ms."""
    for _ in range(3):
        spend(story, story.submit(zil_block()), 4)
        spend(story, story.begin_flush(), 6)
    path = counted(story, operations=2, run_ms=20)
    assert (path.client_operations, path.client_bytes) == (3, 3 * 4096)
    assert (path.flushes_per_operation, path.amplification) == (1, 1)


def test_flushes_of_data_disks_are_not_waited_for_beside_a_log_device(story: Story) -> None:
    story.write(zil_block(), disk=1)
    story.flush(disk=1)
    story.flush(disk=0)
    path = counted(story, shape=PoolShape(logs=("b",)))
    assert path.flushes_per_operation == 1
    assert {name: traffic.requests for name, traffic in path.flushes.items()} == {"a": 1, "b": 1}


def test_settling_counts_bytes_and_no_flushes_of_an_operation(story: Story) -> None:
    story.write(zil_block())
    story.flush()
    ended = len(story.events) - 1
    spend(story, story.submit(BLOCK), 40)
    story.flush()
    untimed = counted(story, ended=ended)
    assert untimed.late_share == 1
    assert untimed.flushes_per_operation == 1
    assert untimed.amplification == (4096 + 16384) / 4096
    assert untimed.client_operations == 1
    assert (untimed.places["data"].requests, untimed.places["data"].timed) == (1, 0)
    timed = counted(story, ended=ended, settled_in=20)
    assert timed.places["data"].median_ms == pytest.approx(2, rel=1e-4)


def test_data_of_the_job_is_late_where_disks_get_it_after_the_end(story: Story) -> None:
    story.write(BLOCK)
    ended = len(story.events) - 1
    story.write(BLOCK)
    story.write(BLOCK)
    story.write(zil_block())
    assert counted(story, ended=ended).late_share == pytest.approx(2 / 3, abs=1e-6)
    assert counted(story).late_share == 0


def test_slow_motion_divides_times(story: Story) -> None:
    spend(story, story.submit(zil_block()), 30)
    path = counted(story, slow_motion=10)
    assert path.places["zil-pool"].median_ms == pytest.approx(3, rel=1e-4)
    assert path.wait == SyncWait(zil_ms=10)


def test_a_job_without_synchronous_writes_has_no_wait(story: Story) -> None:
    story.write(BLOCK)
    path = counted(story, sync_ms=None)
    assert (path.wait, path.flushes_per_operation) == (None, None)
    assert counted(story).wait == SyncWait(rest_ms=10), "no log was written: sync=disabled"


def test_data_that_the_log_points_to_have_a_place_of_their_own(story: Story) -> None:
    place = FIRST_BLOCK + 4 * MIB
    before = story.write(bytes(BLOCK_BYTES), offset=place)
    half = story.write(bytes(BLOCK_BYTES // 2), offset=place + BLOCK_BYTES // 2)
    other = story.write(bytes(BLOCK_BYTES), offset=place + BLOCK_BYTES)
    on_log = story.write(bytes(BLOCK_BYTES), offset=place, disk=1)
    of_other_vdev = story.write(bytes(BLOCK_BYTES), offset=2 * place)
    pointers = ((0, pointer(place, txg=22)), (MIB, pointer(2 * place, txg=22, vdev=1)))
    story.write(pointing(*pointers), offset=8 * MIB)
    after = story.write(bytes(BLOCK_BYTES), offset=place)
    places = places_of_writes(story.recorded(), PoolShape(logs=("b",)))
    assert [places[seq] for seq in (before, half)] == ["pointed"] * 2
    others = {places[seq] for seq in (other, on_log, of_other_vdev, after)}
    assert others == {PathPlace.DATA}
    blind = places_of_writes(story.recorded(), PoolShape(columns=0))
    assert blind[before] is PathPlace.DATA


def test_columns_of_a_log_block_in_a_raidz_are_known_by_the_block_before(story: Story) -> None:
    """Its chain says where the next block is: 12 KiB with parity, at byte 9 Mi of the vdev."""
    block = bytearray(zil_block())
    struct.pack_into("<QQ", block, 8, 24, 9 * MIB // 512)
    struct.pack_into("<QQQQ", block, 104, 1, 2, 3, 8)
    story.write(bytes(block), offset=64 * MIB)
    column = FIRST_BLOCK + 3 * MIB
    with_head = story.write(zil_block(), offset=column)
    data = story.write(METADATA, offset=column, disk=1)
    elsewhere = story.write(METADATA, offset=column + MIB, disk=1)
    places = places_of_writes(story.recorded(), PoolShape(columns=3))
    found = [str(places[seq]) for seq in (with_head, data, elsewhere)]
    assert found == ["zil-pool", "zil-pool", "metadata"]


def test_the_document_comes_back(story: Story) -> None:
    story.write(zil_block())
    story.flush()
    path = counted(story)
    assert WritePath.from_json(path.as_json()) == path


# Random recordings against a slow count.

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

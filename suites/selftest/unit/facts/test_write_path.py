"""The counted write path, by hand-made recordings and against a slow count."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, label, uberblock, zil_block
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.recording.events import Kind
from torture.facts.speed.write_path import (
    ClientWork,
    JobSpan,
    SyncWait,
    WritePath,
    write_path_of,
)
from torture.facts.speed.written_places import PathPlace, PoolShape, places_of_writes

MS = 1_000_000
MIB = 1 << 20
PLAIN = PoolShape()
PAYLOADS = {
    PathPlace.ZIL_POOL: zil_block(),
    PathPlace.DATA: BLOCK,
    PathPlace.METADATA: METADATA,
    PathPlace.UBERBLOCK: uberblock(7),
}


def counted(
    story: Story,
    *,
    ended: int | None = None,
    slow_motion: float = 1,
    settled_in: float = 0,
    operations: float = 1,
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
    work = ClientWork(operations=operations, bytes=operations * 4096, sync_ms=sync_ms)
    return write_path_of(story.recorded(), span, work, shape)


def later(story: Story, ms: float) -> None:
    """Let time pass; the number of an event is a nanosecond, too."""
    story.now_ns += round(ms * MS)


def test_each_write_counts_at_its_place(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
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


def test_a_synchronous_write_waits_for_log_and_flush(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    for _ in range(2):
        write = story.submit(zil_block())
        later(story, 3)
        story.complete(write)
        flush = story.begin_flush()
        later(story, 5)
        story.complete(flush)
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


def test_flushes_of_data_disks_are_not_waited_for_beside_a_log_device(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(zil_block(), disk=1)
    story.flush(disk=1)
    story.flush(disk=0)
    path = counted(story, shape=PoolShape(logs=("b",)))
    assert path.flushes_per_operation == 1
    assert {name: traffic.requests for name, traffic in path.flushes.items()} == {"a": 1, "b": 1}


def test_settling_counts_bytes_and_no_flushes_of_an_operation(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(zil_block())
    story.flush()
    ended = len(story.events) - 1
    write = story.submit(BLOCK)
    later(story, 40)
    story.complete(write)
    story.flush()
    untimed = counted(story, ended=ended)
    assert untimed.flushes_per_operation == 1
    assert untimed.amplification == (4096 + 16384) / 4096
    assert (untimed.places["data"].requests, untimed.places["data"].timed) == (1, 0)
    timed = counted(story, ended=ended, settled_in=20)
    assert timed.places["data"].median_ms == pytest.approx(2, rel=1e-4)


def test_slow_motion_divides_times(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    write = story.submit(zil_block())
    later(story, 30)
    story.complete(write)
    path = counted(story, slow_motion=10)
    assert path.places["zil-pool"].median_ms == pytest.approx(3, rel=1e-4)
    assert path.wait == SyncWait(zil_ms=10)


def test_a_job_without_synchronous_writes_has_no_wait(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(BLOCK)
    path = counted(story, sync_ms=None)
    assert (path.wait, path.flushes_per_operation) == (None, None)
    assert counted(story).wait == SyncWait(rest_ms=10), "no log was written: sync=disabled"


def test_data_that_the_log_points_to_have_a_place_of_their_own(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    place = FIRST_BLOCK + 4 * MIB
    before = story.write(bytes(BLOCK_BYTES), offset=place)
    other = story.write(bytes(BLOCK_BYTES), offset=place + BLOCK_BYTES)
    story.write(pointing((0, pointer(place, txg=22))), offset=8 * MIB)
    after = story.write(bytes(BLOCK_BYTES), offset=place)
    places = places_of_writes(story.recorded(), PoolShape())
    assert [places[seq] for seq in (before, other, after)] == ["pointed", "data", "data"]
    blind = places_of_writes(story.recorded(), PoolShape(columns=0))
    assert blind[before] is PathPlace.DATA


def test_columns_of_a_log_block_in_a_raidz_are_known_by_the_block_before(tmp_path: Path) -> None:
    """Its chain says where the next block is: 12 KiB with parity, at byte 9 Mi of the vdev."""
    story = Story(folder=tmp_path)
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


def test_the_document_comes_back(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(zil_block())
    story.flush()
    path = counted(story)
    assert WritePath.from_json(path.as_json()) == path


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
            later(story, number)
        elif open_requests:
            story.complete(open_requests.pop(number % len(open_requests)))
    return story


@given(steps, st.integers(0, 60))
def test_counts_and_parts_are_those_of_a_slow_count(
    some: list[tuple[str, PathPlace, int, int]], ended: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = story_of(Path(folder), some)
        ended = min(ended, len(story.events) - 1)
        path = counted(story, ended=ended, operations=3, shape=PoolShape(logs=("b",)))
    for place, payload in PAYLOADS.items():
        disks = (0,) if place is PathPlace.ZIL_POOL else (0, 1)
        must_be(path, str(place), story, payload, disks=disks, ended=ended)
    must_be(path, "zil-slog", story, zil_block(), disks=(1,), ended=ended)
    answered = [
        event for event in story.events[: ended + 1]
        if event.kind is Kind.FLUSH_SUBMIT and event.disk == 1
    ]  # fmt: skip
    assert path.flushes_per_operation == pytest.approx(len(answered) / 3, abs=1e-5)
    assert path.wait is not None
    parts = (path.wait.zil_ms, path.wait.flush_ms, path.wait.both_ms, path.wait.rest_ms)
    assert sum(parts) == pytest.approx(10, abs=1e-5)


def must_be(
    path: WritePath, name: str, story: Story, payload: bytes, *, disks: tuple[int, ...], ended: int
) -> None:
    """The place has exactly the writes of this payload on these disks, timed until `ended`."""
    length = len(payload)
    own = [
        event for event in story.events
        if event.kind is Kind.WRITE_SUBMIT and event.disk in disks and event.length == length
        and story._data[event.reference : event.reference + length] == payload
    ]  # fmt: skip
    times = [
        (done.time_ns - event.time_ns) / MS
        for event in own
        for done in story.events
        if done.kind is Kind.WRITE_COMPLETE and done.reference == event.seq and event.seq <= ended
    ]
    if not own:
        assert name not in path.places
        return
    traffic = path.places[name]
    assert (traffic.requests, traffic.bytes) == (len(own), sum(event.length for event in own))
    assert traffic.timed == len(times)
    assert traffic.sum_ms == pytest.approx(sum(times), abs=1e-5)
    assert traffic.median_ms == pytest.approx(median(times) if times else 0, abs=1e-5)

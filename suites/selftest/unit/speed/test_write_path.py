"""The counted write path, by hand-made recordings and against a slow count."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, label, uberblock, zil_block
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
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


def test_moments_of_log_and_flush_together_are_a_part_of_their_own(tmp_path: Path) -> None:
    """A flush from before, 2 ms of it alone; the log's write, 3 ms of it beside a flush of 4 ms."""
    story = Story(folder=tmp_path)
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
    settled = story.submit(zil_block())
    later(story, 50)
    story.complete(settled)
    wait = counted(story, ended=ended, sync_ms=6).wait
    assert wait is not None
    parts = (wait.zil_ms, wait.flush_ms, wait.both_ms, wait.rest_ms)
    assert parts == pytest.approx((2, 1, 3, 0), abs=1e-4)


def test_the_warm_up_counts_for_bytes_and_not_for_flushes(tmp_path: Path) -> None:
    """Three equal operations of 10 ms; fio counted the last two, in 20 ms."""
    story = Story(folder=tmp_path)
    for _ in range(3):
        write = story.submit(zil_block())
        later(story, 4)
        story.complete(write)
        flush = story.begin_flush()
        later(story, 6)
        story.complete(flush)
    path = counted(story, operations=2, run_ms=20)
    assert (path.client_operations, path.client_bytes) == (3, 3 * 4096)
    assert (path.flushes_per_operation, path.amplification) == (1, 1)


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
    assert untimed.late_share == 1
    assert untimed.flushes_per_operation == 1
    assert untimed.amplification == (4096 + 16384) / 4096
    assert untimed.client_operations == 1
    assert (untimed.places["data"].requests, untimed.places["data"].timed) == (1, 0)
    timed = counted(story, ended=ended, settled_in=20)
    assert timed.places["data"].median_ms == pytest.approx(2, rel=1e-4)


def test_data_of_the_job_is_late_where_disks_get_it_after_the_end(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(BLOCK)
    ended = len(story.events) - 1
    story.write(BLOCK)
    story.write(BLOCK)
    story.write(zil_block())
    assert counted(story, ended=ended).late_share == pytest.approx(2 / 3, abs=1e-6)
    assert counted(story).late_share == 0


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

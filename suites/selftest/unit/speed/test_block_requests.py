"""QEMU's trace of a disk, and the time that its requests keep the disk busy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torture.facts.evidence.requests import (
    BlockKind,
    BlockRequest,
    RecordingClock,
    clock_of,
    parse_trace,
)
from torture.features.speed.jobs.write_path import Span, length_of, shared_by, union_of

RECORDED = (Path(__file__).parents[2] / "recorded" / "qemu" / "disk-trace.txt").read_text()
HOUR_NS = 3_600_000_000_000
texts = st.text(alphabet=st.characters(exclude_characters="\r"), max_size=200)


def test_writes_and_flushes_are_read_with_their_times_and_places() -> None:
    requests = parse_trace(RECORDED)
    assert [request.kind for request in requests] == [BlockKind.WRITE] * 6 + [BlockKind.FLUSH]
    assert [request.offset_bytes for request in requests[:6]] == [0, 4096, 8192] * 2
    assert {request.length_bytes for request in requests[:6]} == {4096}
    took_us = [(x.completed_ns - x.submitted_ns) // 1000 for x in requests]
    assert took_us == [354, 182, 119, 317, 221, 130, 143]


def test_a_request_for_the_serial_number_is_no_flush() -> None:
    lines = RECORDED.splitlines()
    [popped] = [line for line in lines if "in_num 1 out_num 1" in line]
    as_serial = RECORDED.replace(popped, popped.replace("in_num 1", "in_num 2"))
    assert BlockKind.FLUSH not in {request.kind for request in parse_trace(as_serial)}


def test_the_memory_of_a_flush_may_be_a_reads_next() -> None:
    popped = "1@1.0000{}0:virtqueue_pop vq 0x1 elem 0x2 in_num {} out_num 1"
    done = "1@1.000030:virtio_blk_req_complete vdev 0x3 req 0x2 status 0"
    flush, read = popped.format(1, 1), popped.format(2, 2)
    assert len(parse_trace("\n".join([flush, done]))) == 1
    assert parse_trace("\n".join([flush, read, done])) == ()


def test_failed_and_earlier_requests_promise_nothing() -> None:
    failed = RECORDED.replace("status 0", "status 1")
    assert parse_trace(failed) == ()
    begun = [line for line in RECORDED.splitlines() if "handle_write" not in line]
    assert {x.kind for x in parse_trace("\n".join(begun))} == {BlockKind.FLUSH}


@given(st.integers(0, len(RECORDED)))
def test_a_truncated_text_yields_fewer_requests_and_no_others(length: int) -> None:
    whole = parse_trace(RECORDED)
    shortened = parse_trace(RECORDED[:length])
    assert shortened == whole[: len(shortened)]


@given(st.lists(st.sampled_from(RECORDED.splitlines()) | texts))
def test_garbled_text_is_no_error(lines: list[str]) -> None:
    for request in parse_trace("\n".join(lines)):
        assert request.length_bytes % 512 == 0


def test_times_are_counted_from_an_instant() -> None:
    request = BlockRequest(kind=BlockKind.FLUSH, submitted_ns=HOUR_NS + 1, completed_ns=HOUR_NS + 5)
    assert RecordingClock(began_ns=HOUR_NS, error_ns=0).dated(request) == BlockRequest(
        kind=BlockKind.FLUSH, submitted_ns=1, completed_ns=5
    )


marks = st.lists(st.tuples(*[st.integers(0, 10**9)] * 3), min_size=1)
"""By mark: when it was recorded, and the time it took there and back."""


@given(marks, st.integers(-(10**18), 10**18))
def test_a_clock_is_as_wrong_as_it_says_at_most(
    sent: list[tuple[int, int, int]], began_ns: int
) -> None:
    spans = [(began_ns + at - there, began_ns + at + back) for at, there, back in sent]
    clock = clock_of(spans, [at for at, _, _ in sent])
    assert clock is not None
    assert abs(clock.began_ns - began_ns) <= clock.error_ns
    assert clock.error_ns <= min(there + back for _, there, back in sent)


def test_a_clock_that_was_set_meanwhile_is_none() -> None:
    assert clock_of([(100, 110), (1_120, 1_130)], [5, 25]) is None
    assert clock_of([], []) is None


# Spans of time against a count of single moments.

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def moments(of: list[Span]) -> set[int]:
    """Every nanosecond in one of the spans."""
    return {moment for start, end in of for moment in range(start, end)}


@given(spans)
def test_a_union_has_each_moment_once(some: list[Span]) -> None:
    union = union_of(some)
    assert moments(union) == moments(some)
    assert length_of(union) == len(moments(some))
    assert all(before[1] < after[0] for before, after in pairwise(union))


@given(spans, spans)
def test_shared_time_is_that_of_the_moments_in_both(one: list[Span], other: list[Span]) -> None:
    shared = shared_by(union_of(one), union_of(other))
    assert shared == len(moments(one) & moments(other))

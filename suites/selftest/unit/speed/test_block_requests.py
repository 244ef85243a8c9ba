"""QEMU's trace of a disk, and the time that its requests keep the disk busy.

Jobs of fio and of gobonniego: their names, their command lines, and the figures of each.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.errors import HarnessError
from torture.facts.evidence.requests import (
    BlockKind,
    BlockRequest,
    RecordingClock,
    clock_of,
    parse_trace,
)
from torture.features.speed.jobs.jobs import (
    Pattern,
    SpeedJob,
    ends_of_run,
    fio_command,
    gobonniego_jobs,
    gobonniego_options,
    parse_fio,
)
from torture.features.speed.jobs.write_path import Span, length_of, shared_by, union_of
from torture.files import CHECKOUT
from torture.oracles.verdict.applications.gobonniego_output import parse_runs

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


_REPORT = (CHECKOUT / "suites/selftest/recorded/fio/syncwrite-4k-t1.json").read_text()
_SYNC = SpeedJob.parse("syncwrite-4k-t1")
_JOBS = st.builds(
    SpeedJob,
    pattern=st.sampled_from(Pattern),
    block_kib=st.integers(1, 1 << 14).map(lambda half: half / 2),
    threads=st.integers(1, 64),
)


@given(_JOBS)
@settings(max_examples=examples(100))
def test_a_name_says_the_whole_job(job: SpeedJob) -> None:
    assert SpeedJob.parse(job.name) == job


@pytest.mark.parametrize(
    "name", ["", "syncwrite", "syncwrite-4-t1", "syncwrite-4k-1", "other-4k-t1", "read-4k-t0",
             "read-0k-t1", "read-0.3k-t1", "read-k-t1", "read-4k-t", "read-4k-t1-x"]
)  # fmt: skip
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"no job|at least"):
        SpeedJob.parse(name)


def _words(name: str) -> list[str]:
    return fio_command(SpeedJob.parse(name), "/dev/vdb", size_mib=64, warm_up_s=2, run_s=6.5)


def test_the_command_line_has_all_of_the_job() -> None:
    words = _words("syncwrite-0.5k-t4")
    for word in ("--rw=randwrite", "--bs=512", "--numjobs=4", "--sync=1", "--direct=1",
                 "--size=16m", "--offset_increment=16m", "--ramp_time=2s", "--runtime=6.5s",
                 "--filename=/dev/vdb", "--ioengine=psync"):  # fmt: skip
        assert word in words
    assert not any(word.startswith("--iodepth") for word in words)


def test_jobs_that_wait_for_nothing_have_many_requests_and_no_flush() -> None:
    for name in ("write-128k-t1", "randwrite-4k-t1", "read-4k-t1"):
        assert not any("sync" in word for word in _words(name))
        assert SpeedJob.parse(name).requests == 16
        assert "--iodepth=16" in _words(name)
    assert "--ioengine=psync" in _words("randread-4k-t1")
    assert SpeedJob.parse("randread-4k-t4").requests == 4


@pytest.mark.parametrize(
    ("name", "depth"),
    [("write-0.5k-t1", 16), ("write-128k-t1", 16), ("write-1024k-t1", 2), ("read-8192k-t4", 1)],
)
def test_large_blocks_are_fewer_at_a_time(name: str, depth: int) -> None:
    """Sixteen of 8 MiB on a slowed link of 1 GbE took longer than any patience."""
    job = SpeedJob.parse(name)
    assert f"--iodepth={depth}" in fio_command(job, "/x", size_mib=64, warm_up_s=1, run_s=1)
    assert job.requests == depth * job.threads


@pytest.mark.parametrize(("pattern", "rw"), [("coldread", "read"), ("coldrandread", "randread")])
def test_a_cold_job_reads_its_data_once(pattern: str, rw: str) -> None:
    """A second pass would find them in the NAS's memory."""
    cold, warm = SpeedJob.parse(f"{pattern}-4k-t1"), SpeedJob.parse(f"{rw}-4k-t1")
    commands = [fio_command(job, "/x", size_mib=1, warm_up_s=1, run_s=1) for job in (cold, warm)]
    assert set(commands[1]) - set(commands[0]) == {"--time_based"}
    assert set(commands[0]) < set(commands[1])
    assert cold.pattern.is_read
    assert cold.requests == warm.requests


def test_a_recorded_report() -> None:
    end = parse_fio(_REPORT, _SYNC)
    reported = json.loads(_REPORT)["jobs"][0]["write"]
    assert end.operations == reported["total_ios"] > 100
    assert end.operations_per_s == pytest.approx(reported["iops"], rel=0.01)
    assert end.mib_per_s == pytest.approx(reported["bw_bytes"] / 2**20, rel=0.01)
    assert end.p50_ms <= end.p99_ms
    assert end.mean_ms * end.operations <= end.run_ms * 1.01


def test_lines_before_the_report_are_passed_over() -> None:
    assert parse_fio("fio: a warning\n" + _REPORT, _SYNC) == parse_fio(_REPORT, _SYNC)


@given(st.integers(0, len(_REPORT) - 2))
@settings(max_examples=examples(60))
def test_a_truncated_report_is_refused(length: int) -> None:
    with pytest.raises(HarnessError):
        parse_fio(_REPORT[:length], _SYNC)


def _changed(**job: Any) -> str:
    report = json.loads(_REPORT)
    report["jobs"][0] |= job
    return json.dumps(report)


@pytest.mark.parametrize(
    "text",
    [_changed(error=5), _changed(write={}), _changed(write=None), '{"jobs": []}', "[]", "{}"],
)
def test_a_report_with_an_error_or_without_the_job_is_refused(text: str) -> None:
    with pytest.raises(HarnessError):
        parse_fio(text, _SYNC)


def test_a_job_that_ended_nothing_has_no_figure() -> None:
    write = json.loads(_REPORT)["jobs"][0]["write"] | {"total_ios": 0}
    with pytest.raises(HarnessError, match="ended nothing"):
        parse_fio(_changed(write=write), _SYNC)


def test_a_read_has_the_figures_of_reads() -> None:
    with pytest.raises(HarnessError, match="unreadable"):
        parse_fio(_REPORT, SpeedJob.parse("read-4k-t1"))


# A run of gobonniego as three jobs: the figures that it prints, and times to match.

_RECORDED = CHECKOUT / "suites/selftest/recorded/gobonniego/two-runs.stdout"


def test_its_jobs_have_names_that_say_them_whole() -> None:
    jobs = gobonniego_jobs(2)
    assert [job.name for job in jobs] == [
        "gobonniego_write-64k-t2",
        "gobonniego_read-64k-t2",
        "gobonniego_iops-0.5k-t2",
    ]
    assert [SpeedJob.parse(job.name) for job in jobs] == list(jobs)
    assert all(job.pattern.is_of_gobonniego for job in jobs)
    assert not SpeedJob.parse("write-64k-t2").pattern.is_of_gobonniego


def test_its_options_say_size_threads_and_time() -> None:
    assert " ".join(gobonniego_options(size_mib=128, threads=2, run_s=2.5)) == (
        "-json -runs 1 -size 0.125 -threads 2 -iops-duration 2.5"
    )


def test_the_ends_have_the_rates_that_a_recorded_run_printed() -> None:
    run = parse_runs(_RECORDED.read_text())[0]
    rates = (run.write_megabytes_per_second, run.read_megabytes_per_second, run.iops)
    write, read, iops = ends_of_run(gobonniego_jobs(2), rates, size_mib=51, run_s=1.0).values()
    assert write.bytes == read.bytes == 51 * 2**20
    for end, rate in ((write, rates[0]), (read, rates[1])):
        assert end.mib_per_s * 2**20 / 1e6 == pytest.approx(rate)
        assert end.operations == 51 * 16
        assert end.mean_ms == pytest.approx(end.run_ms * 2 / end.operations)
    assert iops.operations_per_s == pytest.approx(rates[2], rel=1e-5)
    assert iops.mib_per_s == pytest.approx(rates[2] * 512 / 2**20, rel=1e-5)
    assert iops.mean_ms == pytest.approx(2000 / rates[2], rel=1e-5), "two threads wait at a time"

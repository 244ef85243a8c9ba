"""QEMU's trace of a disk; jobs of fio and of gobonniego: names, command lines, figures, programs."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.folder import Completed
from torture.facts.evidence.requests import (
    BlockKind,
    BlockRequest,
    RecordingClock,
    clock_of,
    parse_trace,
)
from torture.features.speed.jobs.jobs import (
    MEMORY_MIB,
    JobEnd,
    Pattern,
    SpeedJob,
    ends_of_run,
    fio_command,
    gobonniego_jobs,
    gobonniego_options,
    parse_fio,
)
from torture.features.speed.jobs.write_path import PoolShape, Span, length_of, shared_by, union_of
from torture.features.speed.run.job_programs import (
    SETTLING_MAX,
    Recorded,
    Target,
    lay_out,
    run_jobs,
    runs_of,
    shape_of,
    work_of,
)
from torture.features.speed.run.jobs_run import run_rounds
from torture.features.speed.tasks import MeasureOrder
from torture.files import CHECKOUT
from torture.oracles.verdict.applications.gobonniego_output import parse_runs
from torture.trials.trial.shared.resident import EvidenceWriter

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


# The jobs of a measurement: their programs, and the write path that is counted.

_JOB_NAMES = tuple(job.name for job in gobonniego_jobs(2))
_ORDER = MeasureOrder(jobs=_JOB_NAMES, size_mib=128, run_s=4)
_PRINTED = (
    '{"version": "1", "results": [{"write_megabytes_per_second": 10.0,'
    ' "read_megabytes_per_second": 20.0, "iops": 300.0}]}'
)


class Client:
    """A machine that answers each command alike."""

    def __init__(self, stdout: str = _PRINTED, exit_code: int = 0, stderr: str = "") -> None:
        self.commands: list[tuple[str, ...]] = []
        self.programs: dict[str, bytes] = {}
        self.agent = Mock(put_program=self.programs.__setitem__)
        self.spec = Mock(console_log=Path("console.log"))
        self._done = (stdout, exit_code, stderr)

    def run(self, *argv: str, deadline_s: float) -> Completed:
        assert deadline_s > 0
        self.commands.append(argv)
        stdout, exit_code, stderr = self._done
        return Completed(vm="client", argv=argv, exit_code=exit_code, stdout=stdout, stderr=stderr)


def target_of(client: object, program: Path, sha256: str = "") -> Target:
    """A client with a gobonniego that its user brought."""
    job = {"directory": "/mnt/load/bench", "program": str(program), "sha256": sha256}
    return Target(
        client=client,  # type: ignore[arg-type]
        path="/mnt/load/speed",
        slow=lambda _times: None,
        settle=lambda: None,
        empty_cache=lambda: pytest.fail("no job is cold"),
        linked=lambda _link, _times: nullcontext(lambda: 0),
        gobonniego=job,
    )


def test_its_jobs_share_a_run_and_those_of_fio_do_not() -> None:
    fio = ("write-128k-t1", "read-128k-t1")
    assert runs_of((*_JOB_NAMES, *fio)) == (_JOB_NAMES, fio[:1], fio[1:])
    assert runs_of((fio[0], *_JOB_NAMES, fio[1])) == (fio[:1], _JOB_NAMES, fio[1:])
    assert runs_of(()) == ()


def test_one_run_is_the_end_of_each_of_its_jobs(tmp_path: Path) -> None:
    client = Client()
    ends = run_jobs(
        target_of(client, tmp_path), _JOB_NAMES, _ORDER, EvidenceWriter(folder=tmp_path)
    )
    assert list(ends) == list(_JOB_NAMES)
    assert ends[_JOB_NAMES[0]].mib_per_s * 2 == pytest.approx(ends[_JOB_NAMES[1]].mib_per_s)
    assert ends[_JOB_NAMES[2]].operations_per_s == pytest.approx(300)
    (argv,) = client.commands
    script, program, directory, options = argv[2], argv[4], argv[6], argv[7:]
    assert f"- {MEMORY_MIB * 1024}) / $(kib Hugepagesize)" in script
    assert (program, directory) == ("/run/gobonniego", "/mnt/load/bench")
    assert " ".join(options) == "-json -runs 1 -size 0.125 -threads 2 -iops-duration 4"


@pytest.mark.parametrize(
    ("client", "complaint"),
    [
        (Client(stdout=_PRINTED[:40]), "unreadable"),
        (Client(stdout=""), "unreadable"),
        (Client(stdout=f"{_PRINTED}\n{_PRINTED}"), "unreadable"),
        (Client(stdout=_PRINTED.replace("300.0", "0")), "did nothing"),
        (Client(exit_code=2, stderr="panic: no space"), "gobonniego returned 2: panic: no space"),
    ],
)
def test_a_run_without_figures_is_the_machinerys_failure(
    client: Client, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError, match=complaint):
        run_jobs(target_of(client, tmp_path), _JOB_NAMES, _ORDER, EvidenceWriter(folder=tmp_path))


def test_the_users_program_is_brought_in_once_and_must_be_the_same(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_bytes(b"program")
    client, evidence = Client(), EvidenceWriter(folder=tmp_path)
    digest = hashlib.sha256(b"program").hexdigest()
    lay_out(target_of(client, own, digest), _ORDER, evidence)
    assert client.programs == {"/run/gobonniego": b"program"}
    assert client.commands == [], "it makes its own files"
    with pytest.raises(HarnessError, match="is not the file"):
        lay_out(target_of(client, own, "0" * 64), _ORDER, evidence)


# The jobs whose write path is counted: their events, the client's work, the pool's shape.

SYNC = "syncwrite-4k-t1"
END = JobEnd(operations=300, bytes=300 * 4096, run_ms=6000, mean_ms=20, p50_ms=20, p99_ms=20)


@dataclass
class Rig:
    """A shelf whose events are counted by the calls to it."""

    calls: list[str] = field(default_factory=list)

    @property
    def control(self) -> Any:
        return SimpleNamespace(status=lambda: SimpleNamespace(seq=len(self.calls)))

    def observe(self, *_args: object, **_said: object) -> Any:
        self.calls.append("fio")
        return SimpleNamespace(exit_code=0, stdout=_REPORT, stderr="")

    def target(self, *, is_recorded: bool) -> Target:
        shelf = cast("Any", self)
        return Target(
            client=cast("Any", None),
            path="/dev/vdb",
            slow=lambda times: self.calls.append(f"slow {times}"),
            settle=lambda: self.calls.append("settle"),
            empty_cache=lambda: None,
            linked=lambda _link, _times: nullcontext(lambda: 0),
            recorded=Recorded(shelf=shelf, shape=PoolShape()) if is_recorded else None,
        )


def ended_of(rig: Rig, *, is_recorded: bool = True) -> list[Any]:
    order = MeasureOrder(jobs=(SYNC,), rounds=2, slow_motion=40)
    unmodelled = {SYNC: parse_fio(_REPORT, SpeedJob.parse(SYNC))}
    motions = {("", SYNC): 40}
    target = rig.target(is_recorded=is_recorded)
    return list(
        run_rounds(target, order, cast("Any", rig), slow_motion=motions, unmodelled=unmodelled)
    )


def test_the_last_round_is_counted_until_its_groups_are_on_disks() -> None:
    rig = Rig()
    first, last = ended_of(rig)
    assert first.span is None
    assert rig.calls == [
        "slow 40", "fio", "slow 0", "settle", "slow 0",
        "slow 40", "fio", f"slow {SETTLING_MAX}", "settle", "slow 0",
    ]  # fmt: skip
    span = last.span
    assert (span.first, span.ended, span.last) == (5, 7, 10)
    assert (span.slow_motion, span.settled_in) == (40, SETTLING_MAX)


def test_without_a_recording_nothing_is_counted() -> None:
    assert [one.span for one in ended_of(Rig(), is_recorded=False)] == [None, None]


def test_the_work_is_that_of_the_report() -> None:
    work = work_of(SYNC, END, warm_up_s=2, times=10)
    assert (work.operations, work.bytes, work.run_ms) == (300, 300 * 4096, 6000)
    assert work.warm_up_share == pytest.approx(1 / 3)
    assert work.sync_ms == 2
    assert work_of("write-128k-t1", END, warm_up_s=2, times=10).sync_ms is None
    assert work_of("randread-4k-t1", END, warm_up_s=2, times=10).bytes == 0


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("iscsi-always-noslog-raw-bothdie", PoolShape()),
        ("iscsi-always-plp-raw-bothdie", PoolShape(logs=("slog0",))),
        ("nfs4-standard-noslog-raidz1-files-bothdie", PoolShape(columns=3)),
        ("nfs4-standard-noslog-raidz1x7-files-bothdie", PoolShape(columns=7)),
        ("nfs4-standard-noslog-draid1-files-bothdie", PoolShape(columns=0)),
    ],
)
def test_the_shape_is_that_of_the_cells_pool(name: str, shape: PoolShape) -> None:
    assert shape_of(Cell.parse(name)) == shape

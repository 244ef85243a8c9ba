"""The jobs of a measurement: their programs, and the write path that is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.folder import Completed
from torture.features.speed.jobs.jobs import (
    MEMORY_MIB,
    JobEnd,
    SpeedJob,
    gobonniego_jobs,
    parse_fio,
)
from torture.features.speed.jobs.write_path import PoolShape
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
from torture.trials.trial.shared.resident import EvidenceWriter

_JOBS = tuple(job.name for job in gobonniego_jobs(2))
_ORDER = MeasureOrder(jobs=_JOBS, size_mib=128, run_s=4)
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
    assert runs_of((*_JOBS, *fio)) == (_JOBS, fio[:1], fio[1:])
    assert runs_of((fio[0], *_JOBS, fio[1])) == (fio[:1], _JOBS, fio[1:])
    assert runs_of(()) == ()


def test_one_run_is_the_end_of_each_of_its_jobs(tmp_path: Path) -> None:
    client = Client()
    ends = run_jobs(target_of(client, tmp_path), _JOBS, _ORDER, EvidenceWriter(folder=tmp_path))
    assert list(ends) == list(_JOBS)
    assert ends[_JOBS[0]].mib_per_s * 2 == pytest.approx(ends[_JOBS[1]].mib_per_s)
    assert ends[_JOBS[2]].operations_per_s == pytest.approx(300)
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
        run_jobs(target_of(client, tmp_path), _JOBS, _ORDER, EvidenceWriter(folder=tmp_path))


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
LATENCY = {"mean": 20e6, "percentile": {"50.000000": 1, "99.000000": 2}}
WRITTEN = {"total_ios": 300, "io_bytes": 300 * 4096, "runtime": 6000, "clat_ns": LATENCY}
REPORT = json.dumps({"jobs": [{"error": 0, "write": WRITTEN}]})
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
        return SimpleNamespace(exit_code=0, stdout=REPORT, stderr="")

    @contextmanager
    def linked(self, _link: str, _times: int) -> Iterator[Callable[[], int]]:
        yield lambda: 0

    def target(self, *, is_recorded: bool) -> Target:
        shelf = cast("Any", self)
        return Target(
            client=cast("Any", None),
            path="/dev/vdb",
            slow=lambda times: self.calls.append(f"slow {times}"),
            settle=lambda: self.calls.append("settle"),
            empty_cache=lambda: None,
            linked=self.linked,
            recorded=Recorded(shelf=shelf, shape=PoolShape()) if is_recorded else None,
        )


def ended_of(rig: Rig, *, is_recorded: bool = True) -> list[Any]:
    order = MeasureOrder(jobs=(SYNC,), rounds=2, slow_motion=40)
    unmodelled = {SYNC: parse_fio(REPORT, SpeedJob.parse(SYNC))}
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

"""The jobs whose write path is counted: their events, the client's work, the pool's shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.choices.matrix.cells import Cell
from torture.facts.speed.fio_jobs import parse_fio
from torture.facts.speed.jobs import JobEnd, SpeedJob
from torture.facts.speed.written_places import PoolShape
from torture.records.tasks.measure_task import MeasureOrder
from torture.trials.trial.measure.counted_jobs import SETTLING_MAX, Recorded, shape_of, work_of
from torture.trials.trial.measure.job_programs import Target
from torture.trials.trial.measure.jobs_run import run_rounds

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

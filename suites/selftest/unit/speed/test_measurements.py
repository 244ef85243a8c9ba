"""Measurements: their draw, their specs, the order of their rounds, and their records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import structs

from suites.selftest.unit.speed.measured_records import job_end, measured_job
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, Completed, write_document
from torture.facts.recording.disks import Profile
from torture.features.speed import courses
from torture.features.speed.documents import (
    MeasuredDocument,
    MeasuredJob,
    MeasuredPlace,
)
from torture.features.speed.draws import draw_measured
from torture.features.speed.jobs.jobs import JobEnd, Link, SpeedJob, parse_fio
from torture.features.speed.run import jobs_run
from torture.features.speed.run.job_programs import Target
from torture.features.speed.run.jobs_run import (
    find_slow_motions,
    run_rounds,
    run_unmodelled,
)
from torture.features.speed.tasks import MEASURED, MeasureOrder
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.scoring.score import score
from torture.records.tasks import as_json, task_of
from torture.trials.trial.shared.resident import EvidenceWriter

_CELL = Cell.parse("iscsi-always-plp-sas-raw-bothdie")
_REPORT = (CHECKOUT / "suites/selftest/recorded/fio/syncwrite-4k-t1.json").read_text()
_ORDER = MeasureOrder(
    jobs=("syncwrite-4k-t1", "syncwrite-16k-t1"), links=("", Link.GBE1), rounds=2, slow_motion=20
)


def test_each_measurement_has_a_name_and_seed_of_its_own() -> None:
    other = MeasureOrder(place=MeasuredPlace.LOG_DEVICE, device="hdd", jobs=("syncwrite-4k-t1",))
    specs = draw_measured([(_CELL, _ORDER), (_CELL, other), (_CELL, _ORDER)], run_seed=3)
    assert len({spec.trial for spec in specs}) == 3
    assert all(spec.trial.startswith("measured.") for spec in specs)
    assert [spec.task for spec in specs] == [_ORDER, other, _ORDER]
    assert specs == draw_measured([(_CELL, _ORDER), (_CELL, other), (_CELL, _ORDER)], run_seed=3)


def test_a_spec_says_its_order_in_json() -> None:
    (spec,) = draw_measured([(_CELL, _ORDER)], run_seed=3)
    assert TrialSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec


class _Machines:
    """A client that plays fio's report, and the model's levers."""

    def __init__(self, *, exit_code: int = 0) -> None:
        self.happened: list[str] = []
        self.client = Mock(spec=["run", "spec"])
        self.client.spec.console_log = Path("console.log")
        self._exit_code = exit_code
        self.client.run.side_effect = self._run

    def _run(self, *argv: str, deadline_s: float) -> Completed:
        assert deadline_s > 6
        block = next(word for word in argv if word.startswith("--bs="))
        self.happened.append(f"fio {block.removeprefix('--bs=')}")
        return Completed(vm="client", argv=argv, exit_code=self._exit_code, stdout=_REPORT)

    @contextmanager
    def _linked(self, link: str, times: int) -> Iterator[Any]:
        self.happened.append(f"link {link or 'none'} {times}")
        yield lambda: len(self.happened)

    @property
    def target(self) -> Target:
        return Target(
            client=self.client,
            path="/dev/vdb",
            slow=lambda times: self.happened.append(f"slow {times:g}"),
            settle=lambda: self.happened.append("settle"),
            empty_cache=lambda: self.happened.append("empty"),
            linked=self._linked,
        )


def test_the_rounds_turn_and_each_job_runs_alone(tmp_path: Path) -> None:
    machines, evidence = _Machines(), EvidenceWriter(folder=tmp_path)
    unmodelled = run_unmodelled(machines.target, _ORDER, evidence)
    assert machines.happened == ["slow 0", "fio 4096", "fio 16384"]
    machines.happened.clear()
    motions = {(link, job): 20 for link in _ORDER.links for job in _ORDER.jobs}
    motions[Link.GBE1, "syncwrite-16k-t1"] = 30
    ended = run_rounds(
        machines.target, _ORDER, evidence, slow_motion=motions, unmodelled=unmodelled
    )
    jobs = [one.job for one in ended]
    small, large, small_linked, large_linked = (
        [f"link {link} {n}", f"slow {n}", f"fio {bytes_}", "slow 0", "settle", "slow 0"]
        for link, bytes_, n in (
            ("none", 4096, 20), ("none", 16384, 20), ("gbe1", 4096, 20), ("gbe1", 16384, 30)
        )
    )  # fmt: skip
    assert machines.happened == [
        *small, *large, *small_linked, *large_linked,
        *large_linked, *small_linked, *large, *small,
    ]  # fmt: skip
    assert [job.slow_motion for job in jobs] == [20, 20, 20, 30, 30, 20, 20, 20]
    assert [(job.round, job.link) for job in jobs] == [
        (0, ""), (0, ""), (0, "gbe1"), (0, "gbe1"), (1, "gbe1"), (1, "gbe1"), (1, ""), (1, ""),
    ]  # fmt: skip
    end = parse_fio(_REPORT, SpeedJob.parse("syncwrite-4k-t1"))
    assert jobs[0].operations_per_s == pytest.approx(end.operations_per_s * 20, abs=1e-5)
    assert jobs[0].mean_ms == pytest.approx(end.mean_ms / 20, abs=1e-5)
    assert jobs[0].emulator_share == 1, "the played job is as quick without a model"
    assert jobs[0].link_lost == 6, "its own link's"


def test_a_cold_job_finds_an_empty_cache(tmp_path: Path) -> None:
    machines, evidence = _Machines(), EvidenceWriter(folder=tmp_path)
    order = structs.replace(_ORDER, jobs=("read-4k-t1", "coldread-4k-t1"), links=("",), rounds=1)
    machines.client.run.side_effect = lambda *argv, deadline_s: replace(
        machines._run(*argv, deadline_s=deadline_s),
        stdout=_REPORT.replace('"read"', '"trim"').replace('"write"', '"read"'),
    )
    unmodelled = run_unmodelled(machines.target, order, evidence)
    assert machines.happened == ["slow 0", "fio 4096", "empty", "fio 4096"]
    machines.happened.clear()
    motions = {("", job): 20 for job in order.jobs}
    list(run_rounds(machines.target, order, evidence, slow_motion=motions, unmodelled=unmodelled))
    after = ["slow 0", "settle", "slow 0"]
    assert machines.happened == [
        "link none 20", "slow 20", "fio 4096", *after,
        "link none 20", "slow 20", "empty", "fio 4096", *after,
    ]  # fmt: skip


@pytest.mark.parametrize(("times", "warm_up_s", "run_s"), [(1, 2, 6), (20, 10, 20), (69, 34.5, 69)])
def test_a_job_in_slow_motion_is_long_enough_for_the_modelled_machines(
    times: int, warm_up_s: float, run_s: float, tmp_path: Path
) -> None:
    machines, evidence = _Machines(), EvidenceWriter(folder=tmp_path)
    name = "syncwrite-4k-t1"
    order = structs.replace(_ORDER, jobs=(name,), links=("",), rounds=1, modelled_s=1)
    assert task_of(json.loads(json.dumps(as_json(order)))) == order
    unmodelled = run_unmodelled(machines.target, order, evidence)
    motions = {("", name): times}
    list(run_rounds(machines.target, order, evidence, slow_motion=motions, unmodelled=unmodelled))
    lengths = [
        {word for word in call.args if word.startswith(("--ramp", "--runtime"))}
        for call in machines.client.run.call_args_list
    ]
    assert lengths == [
        {"--ramp_time=2s", "--runtime=6s"},
        {f"--ramp_time={warm_up_s:g}s", f"--runtime={run_s:g}s"},
    ]


def test_a_fio_that_fails_is_the_machinerys_failure(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="returned 1"):
        run_unmodelled(_Machines(exit_code=1).target, _ORDER, EvidenceWriter(folder=tmp_path))


def test_the_evidence_of_a_measurement_is_scored(tmp_path: Path) -> None:
    (spec,) = draw_measured([(_CELL, _ORDER)], run_seed=3)
    document = MeasuredDocument(slow_motion=20, jobs=(MeasuredJob(job="syncwrite-4k-t1"),))
    write_document(tmp_path, SPEC, spec.as_json() | {"zfs": "2.3.9"})
    with pytest.raises(HarnessError, match=MeasuredDocument.FILE):
        score(tmp_path, timings={})
    write_document(tmp_path, MeasuredDocument.FILE, document.as_json())
    record = score(tmp_path, timings={"measure": 3})
    assert (record.origin, record.verdict) == (MEASURED, Verdict.INTACT)
    assert record.part(MeasuredDocument) == document
    assert (record.zfs, record.timings) == ("2.3.9", {"measure": 3})
    assert TrialRecord.from_json(record.as_json()) == record


def played(
    monkeypatch: pytest.MonkeyPatch, ms_of: Callable[[str, int], float]
) -> tuple[Callable[[str, int], AbstractContextManager[Callable[[], int]]], list[float]]:
    """A link, and runs over it whose operations take so long by link and slow motion; and these."""
    over, ran = [("", 1)], list[float]()

    @contextmanager
    def linked(link: str, times: int) -> Iterator[Callable[[], int]]:
        over[0] = link, times
        yield lambda: 0

    def run(_target: object, names: tuple[str, ...], *_: object) -> dict[str, JobEnd]:
        ran.append(ms_of(*over[0]))
        return dict.fromkeys(names, job_end(ran[-1]))

    monkeypatch.setattr(jobs_run, "run_jobs", run)
    return linked, ran


def test_each_job_and_link_gets_the_motion_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a simulated NAS that answers before its disk does: an operation waits for the link alone."""
    machines, evidence = _Machines(), EvidenceWriter(folder=tmp_path)
    waited_ms = {"": 10.0, Link.GBE1: 0.24}
    linked, runs = played(monkeypatch, lambda link, times: 1 + waited_ms[link] * times)

    def found(name: str, *links: str, syncs_every_write: bool = False) -> dict[Any, int]:
        return find_slow_motions(
            replace(machines.target, linked=linked),
            MeasureOrder(jobs=(name,), links=links),
            evidence,
            unmodelled={name: job_end(1)},
            profile=Profile(flush_us=10_000),
            syncs_every_write=syncs_every_write,
        )

    assert list(found("write-128k-t1", "").values()) == [2]
    assert list(found("write-128k-t1", "", syncs_every_write=True).values()) == [19]
    runs.clear()
    assert found("syncwrite-4k-t1", "", Link.GBE1) == {
        ("", "syncwrite-4k-t1"): 2,
        (Link.GBE1, "syncwrite-4k-t1"): 48,
    }
    assert len(runs) <= 5, "one where the first guess was right, four at most for the other"


@pytest.mark.parametrize(
    ("chosen", "waited_ms", "motions", "runs"),
    [
        (0, 0.2, [29, 29], 3),  # found too fast by the first round, and right from then on
        (0, 0.5, [20, 20], 2),
        (20, 0.2, [20, 20], 2),  # the user's own
        (0, 0.0, [22, 24], 6),  # nothing waits: no motion helps
    ],
)
def test_a_round_in_too_fast_a_motion_is_run_again(
    chosen: int, waited_ms: float, motions: list[int], runs: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    machines, evidence = _Machines(), EvidenceWriter(folder=tmp_path)
    linked, ran = played(monkeypatch, lambda _link, times: 0.5 + waited_ms * times)
    name = "coldread-128k-t1"
    ended = run_rounds(
        replace(machines.target, linked=linked),
        MeasureOrder(jobs=(name,), links=("",), rounds=2, slow_motion=chosen),
        evidence,
        slow_motion={("", name): 20},
        unmodelled={name: job_end(0.5)},
    )
    assert [one.job.slow_motion for one in ended] == motions
    assert len(ran) == runs


def measured(folder: Path, cell: Cell) -> MeasuredDocument:
    """The measurement of a cell whose one disk flushes in 10 ms, with a motion to be found."""
    disk = Mock(serial="data0", profile=Profile(flush_us=10_000))
    order = structs.replace(_ORDER, slow_motion=0)
    trial = Mock(cell=cell, jobs={}, disks=(disk,))
    trial.spec.task = order
    courses.COURSE.stages(trial, Mock(), EvidenceWriter(folder=folder))
    return MeasuredDocument.from_json(json.loads((folder / MeasuredDocument.FILE).read_text()))


@pytest.mark.parametrize(
    ("name", "syncs_every_write"),
    [
        ("iscsi-standard-noslog-raw-bothdie", False),
        ("iscsi-always-noslog-raw-bothdie", True),
        ("iscsi-disabled-noslog-raw-bothdie", False),
    ],
)
def test_the_slow_motion_of_a_cell_knows_its_sync(
    name: str, syncs_every_write: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courses, "ready_machines", lambda *_: (Mock(), Mock()))
    monkeypatch.setattr(courses, "lay_out", lambda *_: None)
    monkeypatch.setattr(courses, "run_unmodelled", lambda *_: {})
    find = Mock(side_effect=HarnessError("enough"))
    monkeypatch.setattr(courses, "find_slow_motions", find)
    with pytest.raises(HarnessError, match="enough"):
        measured(tmp_path, Cell.parse(name))
    asked = find.call_args.kwargs
    assert asked["syncs_every_write"] is syncs_every_write
    assert asked["profile"] == Profile(flush_us=10_000)


def test_the_document_has_the_slowest_motion_that_a_round_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = structs.replace(measured_job(1.0, link=""), slow_motion=60)
    nas, client = Mock(), Mock()
    nas.must.return_value.stdout, nas.spec.memory_mib, client.spec.memory_mib = "1", 512, 768
    replaced: dict[str, Any] = {
        "ready_machines": (nas, client),
        "lay_out": None,
        "run_unmodelled": {},
        "find_slow_motions": {("", job.job): 40},
        "run_rounds": [Mock(job=job)],
        "Recorded": Mock(counted=lambda one: one.job),
    }
    for name, returned in replaced.items():
        monkeypatch.setattr(courses, name, Mock(return_value=returned))
    monkeypatch.setattr(courses, "_processor_times", Mock(side_effect=[[0] * 8, [1] * 8]))
    document = measured(tmp_path, _CELL)
    assert document.slow_motion == 60
    assert document.timers["nas:/sys/module/zfs/parameters/zfs_txg_timeout"] == "300"

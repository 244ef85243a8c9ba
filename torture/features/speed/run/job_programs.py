"""The programs that run the jobs of a measurement in the client: fio, and the user's gobonniego."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from torture.choices.matrix.cells import LAYOUT, Cell
from torture.choices.workloads.gobonniego import NAME, PROGRAM
from torture.choices.workloads.protocol import Brought
from torture.errors import HarnessError
from torture.facts.axes.pool_disks import Layout
from torture.facts.evidence.folder import Completed, Step
from torture.facts.recording.events import load_part
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.jobs import (
    MEMORY_MIB,
    JobEnd,
    Pattern,
    SpeedJob,
    ends_of_run,
    fio_command,
    gobonniego_options,
    parse_fio,
)
from torture.features.speed.jobs.slow_motion import Timer, timers_script
from torture.features.speed.jobs.write_path import ClientWork, JobSpan, PoolShape, write_path_of
from torture.features.speed.tasks import MeasureOrder
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import log_disks, pool_disks
from torture.machines.shelf.server import Shelf
from torture.oracles.verdict.applications.gobonniego_output import parse_runs
from torture.oracles.verdict.guarantee import UnreadableError
from torture.trials.trial.loads import content_of
from torture.trials.trial.shared.resident import EvidenceWriter

SETTLING_MAX = 10
"""The slow motion of disks that settle after a counted job, at most.

Their requests are timed in slow motion, too. More would take minutes.
"""
_DATA = "data"
_MS_PER_S = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedJob:
    """A job, and its events where its write path is to be counted."""

    job: MeasuredJob
    span: JobSpan | None
    work: ClientWork


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """The shelf that records a measurement's disks."""

    shelf: Shelf
    shape: PoolShape

    def last_event(self) -> int:
        """The number of the last event so far; raises what `Control.status` raises."""
        return self.shelf.control.status().seq

    def counted(self, ended: EndedJob) -> MeasuredJob:
        """The job with its write path. Raises `HarnessError` for an unreadable recording."""
        if ended.span is None:
            return ended.job
        span = ended.span
        part = load_part(self.shelf.recording, first=span.first, last=span.last)
        return replace(ended.job, write_path=write_path_of(part, span, ended.work, self.shape))


def work_of(name: str, end: JobEnd, *, warm_up_s: float, times: float) -> ClientWork:
    """The client's work in a job whose `end` is so many `times` as slow as in real time."""
    pattern = SpeedJob.parse(name).pattern
    return ClientWork(
        operations=end.operations,
        bytes=0 if pattern.is_read else end.bytes,
        run_ms=end.run_ms,
        warm_up_share=warm_up_s * _MS_PER_S / end.run_ms if end.run_ms else 0.0,
        sync_ms=end.mean_ms / times if pattern is Pattern.SYNC_WRITE else None,
    )


def shape_of(cell: Cell) -> PoolShape:
    """The pool of a cell. Addresses in a draid, or beside a special vdev, are not read."""
    serials = [disk.serial for disk in pool_disks(cell)]
    data = [serial for serial in serials if serial.startswith(_DATA)]
    logs = tuple(disk.serial for disk in log_disks(cell))
    if cell[LAYOUT] is Layout.DRAID1 or len(data) + len(logs) < len(serials):
        return PoolShape(logs=logs, columns=0)
    return PoolShape(logs=logs, columns=len(data) if cell[LAYOUT].splits_blocks else 1)


_START_S = 120
"""The time in which fio starts and ends, beside its run."""
_GOBONNIEGO_DEADLINE_S = 3600
"""It writes and reads all its data, however slow the motion is."""
_SCRIPT_DEADLINE_S = 60
_IN_LITTLE_MEMORY = f"""\
pages=/proc/sys/vm/nr_hugepages
kib() {{ awk -v of="$1:" '$1 == of {{ print $2 }}' /proc/meminfo; }}
sync && echo 3 > /proc/sys/vm/drop_caches
taken=$((($(kib MemAvailable) - {MEMORY_MIB * 1024}) / $(kib Hugepagesize)))
echo $taken > $pages
[ "$(cat $pages)" -ge $((taken * 9 / 10)) ] || {{ echo "$(cat $pages) of $taken pages" >&2; exit 1; }}
"$@"
code=$?
echo 0 > $pages
exit $code
"""
"""Shell. Pages that are reserved for another use are lost to the page cache (Linux
Documentation/admin-guide/mm/hugetlbpage.rst). So write-back is that of a small machine, without the
delays of a control group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The machine that runs the jobs, its device or file, and the levers of the model."""

    client: Machine
    path: str
    slow: Callable[[float], None]
    """Make the modelled disks so many times as slow; 0: they do not wait."""
    settle: Callable[[], None]
    """Let everything reach the disks, so that no job works for the one before."""
    empty_cache: Callable[[], object]
    """Take the data out of the NAS's memory."""
    linked: Callable[[str, int], AbstractContextManager[Callable[[], int]]]
    """The modelled link of this name, so many times as slow, while the context lasts.

    It gives a function that counts the frames which the link has dropped."""
    gobonniego: Mapping[str, Any] = field(default_factory=dict)
    """The job of the load of that name; empty where the cell has another load."""
    recorded: Recorded | None = None
    """The recording of the disks, if there is one."""
    timed: Mapping[str, tuple[Machine, tuple[Timer, ...]]] = field(default_factory=dict)
    """By their names, the machines whose kernels have timers."""

    def last_event(self) -> int:
        """The number of the recording's last event; 0 without a recording."""
        return self.recorded.last_event() if self.recorded is not None else 0

    def time(self, times: int) -> None:
        """Make the kernels' timers so many times as long."""
        for machine, timers in self.timed.values():
            machine.must("sh", "-c", timers_script(timers, times), deadline_s=_SCRIPT_DEADLINE_S)


def lay_out(target: Target, order: MeasureOrder, evidence: EvidenceWriter) -> None:
    """Make ready for the jobs. Jobs of fio overwrite and read blocks that were written once."""
    target.slow(0)
    if target.gobonniego:
        brought = Brought(
            load=NAME, path=target.gobonniego["program"], sha256=target.gobonniego["sha256"]
        )
        target.client.agent.put_program(PROGRAM, content_of(brought))
    else:
        argv = (
            "fio", "--name=layout", f"--filename={target.path}", "--rw=write", "--bs=1m",
            "--direct=1", f"--size={order.size_mib}m", "--ioengine=libaio", "--iodepth=8",
            "--end_fsync=1", "--output-format=json",
        )  # fmt: skip
        _run(target, "fio", argv, evidence, deadline_s=_START_S)
    target.settle()


def runs_of(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The jobs of each run of a program: one of fio's, or all of gobonniego's."""
    runs: list[tuple[str, ...]] = []
    for name in names:
        if runs and all(
            SpeedJob.parse(one).pattern.is_of_gobonniego for one in (runs[-1][0], name)
        ):
            runs[-1] += (name,)
        else:
            runs.append((name,))
    return tuple(runs)


def run_jobs(
    target: Target, names: Sequence[str], order: MeasureOrder, evidence: EvidenceWriter
) -> dict[str, JobEnd]:
    """Run the program of these jobs once: the end of each of them.

    Raises `HarnessError` when the program fails.
    """
    jobs = [SpeedJob.parse(name) for name in names]
    if jobs[0].pattern.is_of_gobonniego:
        return _run_gobonniego(target, jobs, order, evidence)
    (job,) = jobs
    if job.pattern.is_cold:
        target.empty_cache()
    argv = fio_command(
        job, target.path, size_mib=order.size_mib, warm_up_s=order.warm_up_s, run_s=order.run_s
    )
    deadline_s = order.warm_up_s + order.run_s + _START_S
    done = _run(target, f"fio's {job.name}", tuple(argv), evidence, deadline_s=deadline_s)
    return {job.name: parse_fio(done.stdout, job)}


def _run_gobonniego(
    target: Target, jobs: Sequence[SpeedJob], order: MeasureOrder, evidence: EvidenceWriter
) -> dict[str, JobEnd]:
    options = gobonniego_options(
        size_mib=order.size_mib, threads=jobs[0].threads, run_s=order.run_s
    )
    argv = (
        "sh", "-c", _IN_LITTLE_MEMORY, "speed",
        PROGRAM, "-dir", target.gobonniego["directory"], *options,
    )  # fmt: skip
    done = _run(target, NAME, argv, evidence, deadline_s=_GOBONNIEGO_DEADLINE_S)
    try:
        (run,) = parse_runs(done.stdout)
    except (UnreadableError, ValueError) as error:
        raise HarnessError(f"gobonniego's report is unreadable: {error}") from error
    rates = (run.write_megabytes_per_second, run.read_megabytes_per_second, run.iops)
    if min(rates) <= 0:
        raise HarnessError(f"gobonniego says that it did nothing: {done.stdout:.300}")
    return ends_of_run(jobs, rates, size_mib=order.size_mib, run_s=order.run_s)


def _run(
    target: Target, what: str, argv: tuple[str, ...], evidence: EvidenceWriter, *, deadline_s: float
) -> Completed:
    done = evidence.observe(target.client, Step.CLIENT_FIO, argv, deadline_s=deadline_s)
    if done.exit_code != 0:
        raise HarnessError(
            f"{what} returned {done.exit_code}: {done.stderr or done.stdout:.300}",
            hint=f"read {target.client.spec.console_log}",
        )
    return done

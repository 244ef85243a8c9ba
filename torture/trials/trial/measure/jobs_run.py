"""The jobs of a measurement on one target, over its links, in rounds that change their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from torture.errors import HarnessError
from torture.facts.evidence.folder import Step
from torture.facts.recording.disks import Profile
from torture.facts.speed.jobs import FioEnd, FioJob, parse_fio
from torture.facts.speed.link import Link
from torture.facts.speed.measured_document import MeasuredJob
from torture.facts.speed.slow_motion import (
    Timer,
    first_slow_motion,
    in_real_time,
    share_of_emulator,
    slower_motion,
    timers_script,
)
from torture.facts.speed.write_path import JobSpan
from torture.machines.lab.machine import Machine
from torture.records.record.measure_order import MeasureOrder
from torture.trials.trial.measure.counted_jobs import SETTLING_MAX, EndedJob, Recorded, work_of
from torture.trials.trial.shared.evidence_writer import EvidenceWriter

_START_S = 120
"""The time in which fio starts and ends, beside its run."""
_SCRIPT_DEADLINE_S = 60
_PILOTS_MAX = 5
_DIGITS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The machine that runs the jobs, its device or file, and the levers of the model."""

    client: Machine
    path: str
    slow: Callable[[float], None]
    """Make the modelled disks so many times as slow; 0: they do not wait."""
    settle: Callable[[], None]
    """Let everything reach the disks, so that no job works for the one before."""
    empty_cache: Callable[[], None]
    """Take the data out of the NAS's memory."""
    linked: Callable[[str, int], AbstractContextManager[Callable[[], int]]]
    """The modelled link of this name, so many times as slow, while the context lasts.

    It gives a function that counts the frames which the link has dropped."""
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
    """Write the whole part of the volume once: the jobs overwrite and read its blocks."""
    argv = (
        "fio", "--name=layout", f"--filename={target.path}", "--rw=write", "--bs=1m", "--direct=1",
        f"--size={order.size_mib}m", "--ioengine=libaio", "--iodepth=8", "--end_fsync=1",
        "--output-format=json",
    )  # fmt: skip
    target.slow(0)
    done = evidence.observe(target.client, Step.CLIENT_FIO, argv, deadline_s=_START_S)
    if done.exit_code != 0:
        raise HarnessError(f"fio could not write {target.path}: {done.stderr or done.stdout:.300}")
    target.settle()


def run_unmodelled(
    target: Target, order: MeasureOrder, evidence: EvidenceWriter
) -> dict[str, FioEnd]:
    """The end of each job on disks that do not wait, over a link that is not modelled."""
    target.slow(0)
    return {name: _run(target, name, order, evidence) for name in order.jobs}


def find_slow_motions(
    target: Target,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    unmodelled: Mapping[str, FioEnd],
    profile: Profile,
    syncs_every_write: bool,
) -> dict[tuple[str, str], int]:
    """Link and job to the least slow motion in which the emulator has little share, by trial runs.

    `profile` and `syncs_every_write` as `first_slow_motion` takes them.
    """
    found = {}
    short = replace(order, run_s=order.run_s / 3, warm_up_s=order.warm_up_s / 2)
    for link in order.links:
        for name, own in unmodelled.items():
            modelled = Link(link) if link else None
            times = first_slow_motion(
                FioJob.parse(name), own, profile, modelled, syncs_every_write=syncs_every_write
            )
            for _ in range(_PILOTS_MAX):
                ran = _run_slowed(target, name, link, times, short, evidence, is_counted=False)
                last, times = times, slower_motion(times, ran.end, own)
                if times == last:
                    break
            found[link, name] = times
    return found


def run_rounds(
    target: Target,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    slow_motion: Mapping[tuple[str, str], int],
    unmodelled: Mapping[str, FioEnd],
) -> Iterator[EndedJob]:
    """Every job over every link in each round, as it would be without slow motion.

    `slow_motion`: link and job to the motion of both. The recording counts the last round.
    """
    for number in range(order.rounds):
        is_counted = target.recorded is not None and number == order.rounds - 1
        for link in _turned(order.links, number):
            for name in _turned(order.jobs, number):
                times = slow_motion[link, name]
                ran = _run_slowed(target, name, link, times, order, evidence, is_counted=is_counted)
                share = share_of_emulator(ran.end, unmodelled[name])
                measured = _measured(name, link, number, in_real_time(ran.end, times), share)
                yield EndedJob(
                    job=replace(measured, link_lost=ran.lost, slow_motion=times),
                    span=ran.span if is_counted else None,
                    work=work_of(name, ran.end, warm_up_s=order.warm_up_s, times=times),
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ran:
    """A job's run in slow motion: its end, its events, and the frames that the link lost."""

    end: FioEnd
    span: JobSpan
    lost: int


def _run_slowed(
    target: Target,
    name: str,
    link: str,
    times: int,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    is_counted: bool,
) -> _Ran:
    settled_in = min(times, SETTLING_MAX) if is_counted else 0
    target.time(times)
    with target.linked(link, times) as count_lost:
        first = target.last_event()
        target.slow(times)
        end = _run(target, name, order, evidence)
        ended = target.last_event()
        target.slow(settled_in)
        target.settle()
        target.slow(0)
        lost = count_lost()
    span = JobSpan(
        first=first, ended=ended, last=target.last_event(),
        slow_motion=times, settled_in=settled_in,
    )  # fmt: skip
    return _Ran(end=end, span=span, lost=lost)


def _turned(names: Sequence[str], number: int) -> tuple[str, ...]:
    """A B, B A, A B: a drift of the host hits no name more than others."""
    return tuple(names) if number % 2 == 0 else tuple(reversed(names))


def _run(target: Target, name: str, order: MeasureOrder, evidence: EvidenceWriter) -> FioEnd:
    job = FioJob.parse(name)
    if job.pattern.is_cold:
        target.empty_cache()
    argv = job.command(
        target.path, size_mib=order.size_mib, warm_up_s=order.warm_up_s, run_s=order.run_s
    )
    deadline_s = order.warm_up_s + order.run_s + _START_S
    done = evidence.observe(target.client, Step.CLIENT_FIO, tuple(argv), deadline_s=deadline_s)
    if done.exit_code != 0:
        raise HarnessError(
            f"fio's {name} returned {done.exit_code}: {done.stderr or done.stdout:.300}",
            hint=f"read {target.client.spec.console_log}",
        )
    return parse_fio(done.stdout, job)


def _measured(name: str, link: str, number: int, end: FioEnd, share: float) -> MeasuredJob:
    return MeasuredJob(
        job=name,
        link=link,
        round=number,
        operations=end.operations,
        operations_per_s=round(end.operations_per_s, _DIGITS),
        mib_per_s=round(end.mib_per_s, _DIGITS),
        mean_ms=round(end.mean_ms, _DIGITS),
        p50_ms=round(end.p50_ms, _DIGITS),
        p99_ms=round(end.p99_ms, _DIGITS),
        emulator_share=round(share, _DIGITS),
    )

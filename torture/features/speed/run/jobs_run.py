"""The jobs of a measurement on one target, over its links, in rounds that change their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec import structs
from msgspec.structs import replace

from torture.facts.recording.disks import Profile
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.jobs import JobEnd, Link, SpeedJob
from torture.features.speed.jobs.slow_motion import (
    SHARE_MAX,
    first_slow_motion,
    in_real_time,
    share_of_emulator,
    slower_motion,
)
from torture.features.speed.jobs.write_path import JobSpan
from torture.features.speed.run.job_programs import (
    SETTLING_MAX,
    EndedJob,
    Target,
    run_jobs,
    runs_of,
    work_of,
)
from torture.features.speed.tasks import MeasureOrder
from torture.trials.trial.shared.resident import EvidenceWriter

T = TypeVar("T")

_PILOTS_MAX = 5
_TRIES_MAX = 3
"""A round in which the emulator has too much is run again: pilots are short, and read-ahead grows."""
_DIGITS = 6


def run_unmodelled(
    target: Target, order: MeasureOrder, evidence: EvidenceWriter
) -> dict[str, JobEnd]:
    """The end of each job on disks that do not wait, over a link that is not modelled."""
    target.slow(0)
    ends: dict[str, JobEnd] = {}
    for names in runs_of(order.jobs):
        ends |= run_jobs(target, names, order, evidence)
    return ends


def find_slow_motions(
    target: Target,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    unmodelled: Mapping[str, JobEnd],
    profile: Profile,
    syncs_every_write: bool,
) -> dict[tuple[str, str], int]:
    """Link and job to the least slow motion in which the emulator has little share, by trial runs.

    `profile` and `syncs_every_write` as `first_slow_motion` takes them.
    """
    found: dict[tuple[str, str], int] = {}
    short = replace(
        order, run_s=order.run_s / 3, warm_up_s=order.warm_up_s / 2, modelled_s=order.modelled_s / 3
    )
    for link in order.links:
        modelled = Link(link) if link else None
        for names in runs_of(order.jobs):
            own = {name: unmodelled[name] for name in names}
            times = max(
                first_slow_motion(
                    SpeedJob.parse(name),
                    end,
                    profile,
                    modelled,
                    syncs_every_write=syncs_every_write,
                )
                for name, end in own.items()
            )
            for _ in range(_PILOTS_MAX):
                ran = _run_slowed(target, names, link, times, short, evidence, is_counted=False)
                last = times
                times = max(slower_motion(last, ran.ends[name], end) for name, end in own.items())
                if times == last:
                    break
            found |= {(link, name): times for name in names}
    return found


def run_rounds(
    target: Target,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    slow_motion: Mapping[tuple[str, str], int],
    unmodelled: Mapping[str, JobEnd],
) -> Iterator[EndedJob]:
    """Every job over every link in each round, as it would be without slow motion.

    `slow_motion`: link and job to the motion of both. A round that shows a motion to be too fast is run
    again in a slower one. The next rounds keep that one. A motion that the order names never changes.
    The recording counts the last round.
    """
    motions = dict(slow_motion)
    for number in range(order.rounds):
        is_counted = target.recorded is not None and number == order.rounds - 1
        for link in _turned(order.links, number):
            for names in _turned(runs_of(order.jobs), number):
                own = {name: unmodelled[name] for name in names}
                times, ran = _run_slow_enough(
                    target,
                    link,
                    motions[link, names[0]],
                    own,
                    order,
                    evidence,
                    is_counted=is_counted,
                )
                motions |= {(link, name): times for name in names}
                for name, end in ran.ends.items():
                    share = share_of_emulator(end, own[name])
                    measured = _measured(name, link, number, in_real_time(end, times), share)
                    yield EndedJob(
                        job=structs.replace(measured, link_lost=ran.lost, slow_motion=times),
                        # the events of a run with several jobs are of no single one
                        span=ran.span if is_counted and len(names) == 1 else None,
                        work=work_of(
                            name, end, warm_up_s=order.in_slow_motion(times).warm_up_s, times=times
                        ),
                    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ran:
    """A run in slow motion: the end of each job, the events, and the frames that the link lost."""

    ends: dict[str, JobEnd]
    span: JobSpan
    lost: int


def _run_slowed(
    target: Target,
    names: Sequence[str],
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
        ends = run_jobs(target, names, order.in_slow_motion(times), evidence)
        ended = target.last_event()
        target.slow(settled_in)
        target.settle()
        target.slow(0)
        lost = count_lost()
    span = JobSpan(
        first=first, ended=ended, last=target.last_event(),
        slow_motion=times, settled_in=settled_in,
    )  # fmt: skip
    return _Ran(ends=ends, span=span, lost=lost)


def _run_slow_enough(
    target: Target,
    link: str,
    times: int,
    own: Mapping[str, JobEnd],
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    is_counted: bool,
) -> tuple[int, _Ran]:
    """The run in which the emulator has little enough, or the last try, and its motion.

    `own`: the jobs to run together, and the end of each without modelled disks and link.
    """
    for _ in range(1 if order.slow_motion else _TRIES_MAX):
        ran = _run_slowed(target, tuple(own), link, times, order, evidence, is_counted=is_counted)
        last = times
        if all(share_of_emulator(ran.ends[name], end) <= SHARE_MAX for name, end in own.items()):
            break
        times = max(slower_motion(last, ran.ends[name], end) for name, end in own.items())
        if times == last:
            break
    return last, ran


def _turned(ones: Sequence[T], number: int) -> tuple[T, ...]:
    """A B, B A, A B: a drift of the host hits no one more than others."""
    return tuple(ones) if number % 2 == 0 else tuple(reversed(ones))


def _measured(name: str, link: str, number: int, end: JobEnd, share: float) -> MeasuredJob:
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

"""Made-up measurements of cells, for the report's tests and its page."""

from __future__ import annotations

from collections.abc import Sequence

from suites.selftest.unit.made_records import trial_record
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.features.speed.documents import MeasuredDocument, MeasuredJob, MeasuredPlace
from torture.features.speed.jobs.jobs import JobEnd, SpeedJob
from torture.features.speed.tasks import MEASURED
from torture.records.record.trials import TrialRecord

SYNC_4K = "syncwrite-4k-t1"


def job_end(ms: float, *, operations: int = 100, bytes_: int = 4096) -> JobEnd:
    """Operations one after the other, of this time each."""
    return JobEnd(
        operations=operations,
        bytes=operations * bytes_,
        run_ms=operations * ms,
        mean_ms=ms,
        p50_ms=ms,
        p99_ms=ms,
    )


def measured_job(
    ms: float, *, job: str = SYNC_4K, link: str = "gbe1", number: int = 0, share: float = 0.02
) -> MeasuredJob:
    """A round of a job whose operations took so long, with rates to match."""
    own = SpeedJob.parse(job)
    per_s = own.threads * 1000 / ms
    return MeasuredJob(
        job=job,
        link=link,
        round=number,
        operations=round(per_s * 6),
        operations_per_s=per_s,
        mib_per_s=per_s * own.block_kib / 1024,
        mean_ms=ms,
        p50_ms=ms,
        p99_ms=2 * ms,
        emulator_share=share,
    )


def measured_record(
    name: str, jobs: Sequence[MeasuredJob], *, index: int = 0, device: str = ""
) -> TrialRecord:
    """The measurement of a cell; of a log device alone where its class is given."""
    cell = Cell.parse(name)
    place = MeasuredPlace.LOG_DEVICE if device else MeasuredPlace.VOLUME
    return trial_record(
        trial=f"measured.{name}.{index:04d}-{index:016x}",
        cell=name,
        axes=cell.axes,
        guarantee=guarantee_of(cell),
        origin=MEASURED,
        zfs="2.3.9",
        measured=MeasuredDocument(
            place=place, device=device, slow_motion=20, jobs=tuple(jobs), size_mib=128
        ),
    )


def measured_rounds(
    name: str,
    times_ms: Sequence[float],
    *,
    job: str = SYNC_4K,
    link: str = "gbe1",
    share: float = 0.02,
) -> list[TrialRecord]:
    """Two passes over a cell, with these times in their rounds."""
    half = (len(times_ms) + 1) // 2
    return [
        measured_record(
            name,
            [
                measured_job(ms, job=job, link=link, number=number, share=share)
                for number, ms in enumerate(part)
            ],
            index=index,
        )
        for index, part in enumerate((times_ms[:half], times_ms[half:]))
    ]

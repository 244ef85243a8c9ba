"""gobonniego as the program of three jobs: one run of it is a part for each of them (pure).

Its threads write files in chunks of 64 KiB, and read them back. Then each reads 512 bytes at a random
place again and again, and writes there every tenth time (github.com/cunnie/gobonniego, README.md,
"Technical Notes"). All of it goes through the client's page cache. So the program gets less memory
than its files have, as it writes twice a machine's memory by default.
"""

from __future__ import annotations

from collections.abc import Sequence

from torture.facts.speed.jobs import JobEnd, Pattern, SpeedJob

MEMORY_MIB = 48
"""The client's free memory, for the program and the page cache of its files."""
_GIB_MIB = 1024
_MS_PER_S = 1000
_BYTES_PER_MB = 10**6
_BLOCKS_KIB = {
    Pattern.GOBONNIEGO_WRITE: 64.0,
    Pattern.GOBONNIEGO_READ: 64.0,
    Pattern.GOBONNIEGO_IOPS: 0.5,
}


def gobonniego_jobs(threads: int) -> tuple[SpeedJob, ...]:
    """The jobs of one run."""
    return tuple(
        SpeedJob(pattern=pattern, block_kib=block_kib, threads=threads)
        for pattern, block_kib in _BLOCKS_KIB.items()
    )


def gobonniego_options(*, size_mib: int, threads: int, run_s: float) -> tuple[str, ...]:
    """Its options for one run that prints JSON; `run_s` is the time of its last part."""
    size_gib = size_mib / _GIB_MIB
    return (
        "-json", "-runs", "1", "-size", f"{size_gib:g}", "-threads", str(threads),
        "-iops-duration", f"{run_s:g}",
    )  # fmt: skip


def ends_of_run(
    jobs: Sequence[SpeedJob], rates: Sequence[float], *, size_mib: int, run_s: float
) -> dict[str, JobEnd]:
    """The ends of the three jobs by their names.

    `rates`: MB (10^6 bytes) a second written and read, and operations a second, as it prints them.
    """
    return {
        job.name: _end(job, rate, size_mib=size_mib, run_s=run_s)
        for job, rate in zip(jobs, rates, strict=True)
    }


def _end(job: SpeedJob, rate: float, *, size_mib: int, run_s: float) -> JobEnd:
    block_bytes = round(job.block_kib * 1024)
    if job.pattern is Pattern.GOBONNIEGO_IOPS:
        operations, run_ms = round(rate * run_s), run_s * _MS_PER_S
    else:
        operations = size_mib * 2**20 // block_bytes
        run_ms = size_mib * 2**20 / (rate * _BYTES_PER_MB) * _MS_PER_S
    mean_ms = run_ms * job.threads / operations if operations else 0.0
    return JobEnd(
        operations=operations, bytes=operations * block_bytes, run_ms=run_ms, mean_ms=mean_ms
    )

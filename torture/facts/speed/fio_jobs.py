"""fio as the program of a job: its command line and its report (pure)."""

from __future__ import annotations

from typing import Any

from torture.errors import HarnessError
from torture.facts.evidence.strict_json import strict_json
from torture.facts.speed.jobs import JobEnd, Pattern, SpeedJob

_NS_PER_MS = 1e6
_PERCENTILES = {"50.000000": "p50_ms", "99.000000": "p99_ms"}


def fio_command(
    job: SpeedJob, target: str, *, size_mib: int, warm_up_s: float, run_s: float
) -> list[str]:
    """The command line for a device or file (fio(1)); the report is JSON.

    Each thread has its own part of the target, so that no request waits for another's blocks.
    """
    part_mib = size_mib // job.threads
    pattern = job.pattern
    written = "randwrite" if pattern is Pattern.SYNC_WRITE else str(pattern)
    engine = ["--ioengine=libaio", f"--iodepth={job.requests // job.threads}"]
    words = [
        "fio", "--name=speed", f"--filename={target}", f"--rw={written.removeprefix('cold')}",
        *(["--ioengine=psync"] if pattern.waits_for_each else engine),
        f"--bs={round(job.block_kib * 1024)}", f"--numjobs={job.threads}", "--thread",
        f"--size={part_mib}m", f"--offset_increment={part_mib}m", "--direct=1",
        f"--ramp_time={warm_up_s:g}s", f"--runtime={run_s:g}s",
        "--group_reporting", "--output-format=json", "--randrepeat=1", "--norandommap",
    ]  # fmt: skip
    if not pattern.is_cold:  # a second pass would find the data in the NAS's memory
        words.append("--time_based")
    if pattern is Pattern.SYNC_WRITE:
        words.append("--sync=1")
    return words


def parse_fio(text: str, job: SpeedJob) -> JobEnd:
    """The end of this job by fio's report (`--output-format=json`).

    fio may print a line before the report. Raises `HarnessError` for a report that is unreadable, has
    an error, or nothing of the job.
    """
    try:
        (report,) = strict_json(text[text.index("{") :].encode())["jobs"]
        if report["error"] != 0:
            raise ValueError(f"fio's error {report['error']}")
        end = _end_of(report["read" if job.pattern.is_read else "write"])
    except (ValueError, LookupError, TypeError) as error:
        raise HarnessError(
            f"fio's report of {job.name} is unreadable ({error!r}): {text[:300]}"
        ) from error
    if end.operations < 1:
        raise HarnessError(f"{job.name} ended nothing in {end.run_ms:g} ms")
    return end


def _end_of(part: dict[str, Any]) -> JobEnd:
    latency = part["clat_ns"]
    percentiles = {
        name: float(latency["percentile"][percent]) / _NS_PER_MS
        for percent, name in _PERCENTILES.items()
    }
    return JobEnd(
        operations=int(part["total_ios"]),
        bytes=int(part["io_bytes"]),
        run_ms=float(part["runtime"]),
        mean_ms=float(latency["mean"]) / _NS_PER_MS,
        **percentiles,
    )

"""The jobs of fio that a measurement runs, and fio's report of each (pure)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torture.errors import HarnessError

_NS_PER_MS = 1e6
_MS_PER_S = 1000
_CACHED_DEPTH, _CACHED_KIB = 16, 2048
_PERCENTILES = {"50.000000": "p50_ms", "99.000000": "p99_ms"}


class Pattern(StrEnum):
    """The order and the durability of a job's requests."""

    SYNC_WRITE = "syncwrite"
    """Random writes, each durable before the next one begins (O_DIRECT and O_SYNC)."""
    RANDOM_WRITE = "randwrite"
    """Random writes without a request for durability."""
    SEQUENTIAL_WRITE = "write"
    """One write after the other, without a request for durability.

    At the end the last ones may be in the NAS's memory alone: their client does not wait for more.
    """
    SEQUENTIAL_READ = "read"
    RANDOM_READ = "randread"
    COLD_SEQUENTIAL_READ = "coldread"
    """As `read`, once over data that the NAS has not in its memory."""
    COLD_RANDOM_READ = "coldrandread"

    @property
    def is_cold(self) -> bool:
        """Whether the NAS's cache is empty as it begins."""
        return self in (Pattern.COLD_SEQUENTIAL_READ, Pattern.COLD_RANDOM_READ)

    @property
    def is_read(self) -> bool:
        """Whether it reads earlier data."""
        return self in (Pattern.SEQUENTIAL_READ, Pattern.RANDOM_READ) or self.is_cold

    @property
    def waits_for_each(self) -> bool:
        """Whether a thread has one request at a time."""
        return self in (Pattern.SYNC_WRITE, Pattern.RANDOM_READ, Pattern.COLD_RANDOM_READ)

    @property
    def of_fio(self) -> str:
        """As fio's option `--rw` has it."""
        written = "randwrite" if self is Pattern.SYNC_WRITE else str(self)
        return written.removeprefix("cold")


@dataclass(frozen=True, kw_only=True, slots=True)
class FioJob:
    """A job: each of its threads waits for its own requests of `block_kib`.

    A sequential job, or one whose writes may be cached, has 16 of them at a time, as a page cache
    has. Of large blocks it has 2 MiB at a time, or one block. All others have one.
    """

    pattern: Pattern
    block_kib: float
    threads: int = 1

    @property
    def name(self) -> str:
        """Its name in records and options, e.g. `syncwrite-4k-t1`; `parse` takes it back."""
        return f"{self.pattern}-{self.block_kib:g}k-t{self.threads}"

    @classmethod
    def parse(cls, name: str) -> FioJob:
        """The job of a name; raises `ValueError` with the form of a name."""
        try:
            pattern, block, threads = name.split("-")
            if block[-1] != "k" or threads[0] != "t":
                raise ValueError(name)
            job = cls(
                pattern=Pattern(pattern), block_kib=float(block[:-1]), threads=int(threads[1:])
            )
        except (ValueError, IndexError) as error:
            form = f"{{{'|'.join(Pattern)}}}-{{KIB}}k-t{{THREADS}}"
            raise ValueError(f"{name!r} is no job of the form {form}") from error
        if job.threads < 1 or job.block_kib < 0.5 or job.block_kib * 2 % 1:
            raise ValueError(f"{name!r}: a thread and a sector of 512 bytes at least")
        return job

    @property
    def requests(self) -> int:
        """The requests of all threads that are under way at a time."""
        return self.threads * self._depth

    @property
    def _depth(self) -> int:
        if self.pattern.waits_for_each:
            return 1
        return max(1, min(_CACHED_DEPTH, int(_CACHED_KIB / self.block_kib)))

    @property
    def _engine(self) -> tuple[str, ...]:
        if self.pattern.waits_for_each:
            return ("--ioengine=psync",)
        return ("--ioengine=libaio", f"--iodepth={self._depth}")

    def command(self, target: str, *, size_mib: int, warm_up_s: float, run_s: float) -> list[str]:
        """The command line for a device or file (fio(1)); the report is JSON.

        Each thread has its own part of the target, so that no request waits for another's blocks.
        """
        part_mib = size_mib // self.threads
        words = [
            "fio", "--name=speed", f"--filename={target}", f"--rw={self.pattern.of_fio}", *self._engine,
            f"--bs={round(self.block_kib * 1024)}", f"--numjobs={self.threads}", "--thread",
            f"--size={part_mib}m", f"--offset_increment={part_mib}m", "--direct=1",
            f"--ramp_time={warm_up_s:g}s", f"--runtime={run_s:g}s",
            "--group_reporting", "--output-format=json", "--randrepeat=1", "--norandommap",
        ]  # fmt: skip
        if not self.pattern.is_cold:  # a second pass would find the data in the NAS's memory
            words.append("--time_based")
        if self.pattern is Pattern.SYNC_WRITE:
            words.append("--sync=1")
        return words


@dataclass(frozen=True, kw_only=True, slots=True)
class FioEnd:
    """The end of a job, in the guest's own time."""

    operations: int
    bytes: int
    run_ms: float
    mean_ms: float
    """Of one operation, from its submission to its end."""
    p50_ms: float
    p99_ms: float

    @property
    def operations_per_s(self) -> float:
        """The rate over the run."""
        return self.operations / self.run_ms * _MS_PER_S if self.run_ms else 0.0

    @property
    def mib_per_s(self) -> float:
        """The throughput over the run."""
        return self.bytes / 2**20 / self.run_ms * _MS_PER_S if self.run_ms else 0.0


def parse_fio(text: str, job: FioJob) -> FioEnd:
    """The end of this job by fio's report (`--output-format=json`).

    fio may print a line before the report. Raises `HarnessError` for a report that is unreadable, has
    an error, or nothing of the job.
    """
    try:
        (report,) = json.loads(text[text.index("{") :])["jobs"]
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


def _end_of(part: dict[str, Any]) -> FioEnd:
    latency = part["clat_ns"]
    percentiles = {
        name: float(latency["percentile"][percent]) / _NS_PER_MS
        for percent, name in _PERCENTILES.items()
    }
    return FioEnd(
        operations=int(part["total_ios"]),
        bytes=int(part["io_bytes"]),
        run_ms=float(part["runtime"]),
        mean_ms=float(latency["mean"]) / _NS_PER_MS,
        **percentiles,
    )

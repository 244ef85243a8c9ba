"""The jobs that a measurement runs: fio's, gobonniego's, and the end of each.

gobonniego's threads write files in chunks of 64 KiB, and read them back. Then each reads 512 bytes at a
random place again and again, and writes there every tenth time (github.com/cunnie/gobonniego,
README.md, "Technical Notes"). All of it goes through the client's page cache. So the program gets less
memory than its files have, as it writes twice a machine's memory by default.

The link between a NAS and all others: its rate and its round trip, also in slow motion.

In slow motion of N everything modelled takes N times as long, and a measured time is divided by N. An
emulated processor is too slow beside a modelled link at its true speed. Beside a slow one it is not.
The product of rate and delay stays, and so does each buffer and window in bytes.

A round trip is that of cards, their interrupts, one switch and short cables. The kernels' own work
comes on top: it is done in the guests. A frame's time on the wire comes on top, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torture.errors import HarnessError
from torture.facts.evidence.documents import strict_json
from torture.machines.lab.network.wire import Pace

_MS_PER_S = 1000
_CACHED_DEPTH, _CACHED_KIB = 16, 2048


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
    GOBONNIEGO_WRITE = "gobonniego_write"
    """The three parts of a run of gobonniego, on files. See `torture.features.speed.jobs.jobs`."""
    GOBONNIEGO_READ = "gobonniego_read"
    GOBONNIEGO_IOPS = "gobonniego_iops"

    @property
    def is_of_gobonniego(self) -> bool:
        """Whether gobonniego runs it; else fio does."""
        return self in (Pattern.GOBONNIEGO_WRITE, Pattern.GOBONNIEGO_READ, Pattern.GOBONNIEGO_IOPS)

    @property
    def is_cold(self) -> bool:
        """Whether the NAS's cache is empty as it begins."""
        return self in (Pattern.COLD_SEQUENTIAL_READ, Pattern.COLD_RANDOM_READ)

    @property
    def is_read(self) -> bool:
        """Whether it reads earlier data, or mostly does."""
        return self.is_cold or self in (
            Pattern.SEQUENTIAL_READ,
            Pattern.RANDOM_READ,
            Pattern.GOBONNIEGO_READ,
            Pattern.GOBONNIEGO_IOPS,
        )

    @property
    def waits_for_each(self) -> bool:
        """Whether a thread has one request at a time."""
        return self in (
            Pattern.SYNC_WRITE,
            Pattern.RANDOM_READ,
            Pattern.COLD_RANDOM_READ,
            Pattern.GOBONNIEGO_IOPS,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeedJob:
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
    def parse(cls, name: str) -> SpeedJob:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class JobEnd:
    """The end of a job, in the guest's own time."""

    operations: int
    bytes: int
    run_ms: float
    mean_ms: float
    """Of one operation, from its submission to its end."""
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    """0 where the program does not say it."""

    @property
    def operations_per_s(self) -> float:
        """The rate over the run."""
        return self.operations / self.run_ms * _MS_PER_S if self.run_ms else 0.0

    @property
    def mib_per_s(self) -> float:
        """The throughput over the run."""
        return self.bytes / 2**20 / self.run_ms * _MS_PER_S if self.run_ms else 0.0


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


MEMORY_MIB = 48
"""The client's free memory, for the program and the page cache of its files."""
_GIB_MIB = 1024
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


class Link(StrEnum):
    """A kind of link. Its absence is the host's own speed."""

    GBE1 = "gbe1"
    """1 Gb/s, 200 us.

    A switch takes 10 to 30 us, and a card 2.5 to 32 us at each passage. The source is table 1 of
    Rumble et al., "It's Time for Low Latency", HotOS 2011. Two and four passages are 30 to 188 us. A
    card's interrupts alone may be 50 to 250 us apart: Linux `e1000e.rst`, `InterruptThrottleRate`, has
    4000 to 20000 a second by default."""
    GBE10 = "gbe10"
    """10 Gb/s, 50 us: cards at the lower end of the same table, and a switch that cuts through.

    The rest is the interrupts' moderation."""
    GBE25 = "gbe25"
    """25 Gb/s, 30 us: the same with newer cards."""
    FC4 = "fc4"
    """Fibre Channel at 4 Gb/s: 3.4 Gb/s and 30 us.

    4.25 Gbaud in the 8b/10b code are 3.4 Gb/s (INCITS FC-PI-2). Its frames' overhead leaves 400 MB/s,
    and so does Ethernet's with frames of 1514 bytes. A switch takes below 1 us (QLogic 59096-04, table
    3-3): the time is the adapters'."""

    @property
    def rate_bits_per_s(self) -> int:
        """Bits of a second on the wire, with the framing of frames."""
        return _RATES[self]

    @property
    def round_trip_us(self) -> int:
        """The delay of both directions together, for a frame without length."""
        return _ROUND_TRIPS[self]


_RATES = {
    Link.GBE1: 1_000_000_000,
    Link.GBE10: 10_000_000_000,
    Link.GBE25: 25_000_000_000,
    Link.FC4: 3_400_000_000,
}
_ROUND_TRIPS = {Link.GBE1: 200, Link.GBE10: 50, Link.GBE25: 30, Link.FC4: 30}


def slowed(link: Link, n: int) -> Pace:
    """The link in slow motion of `n`; 1 is its true speed. Raises `ValueError` for a smaller `n`."""
    if n < 1:
        raise ValueError(f"slow motion must be at least 1, not {n}")
    return Pace(
        rate_bits_per_s=round(link.rate_bits_per_s / n), one_way_us=link.round_trip_us * n // 2
    )

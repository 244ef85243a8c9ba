"""The jobs that a measurement runs, by their names, and the end of each (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
    """The three parts of a run of gobonniego, on files. See `torture.facts.speed.gobonniego_jobs`."""
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

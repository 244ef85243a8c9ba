"""Slow motion: all that is modelled takes N times as long, and the guests' processors do not (pure).

Under emulation a processor is some 20 times as slow as a real one, and the modelled disks are not.
Disks, link and timers that are N times as slow give both their real proportion again. A figure is
then multiplied by N: a rate of 5 writes a second in slow motion of 20 stands for 100.

Ratios of measured figures, with intervals over rounds (pure).

An interval is Student's, of the figures' logarithms. The bootstrap is short where rounds are few: its
95 % interval of 8 rounds held the truth in 82 of 100 simulations. Student's held it in 95.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from torture.facts.recording.disks import Profile
from torture.features.speed.jobs.jobs import JobEnd, Link, Pattern, SpeedJob

SHARE_MAX = 0.1
"""The emulator's share in a figure, at most: a larger one is the emulator's figure."""
_SHARE_CHOSEN = 0.08
_SHARE_ENOUGH = 0.09
"""A motion is chosen for the first share and kept up to the second: the emulator's speed varies."""
_GROWTH_MAX = 8
SLOWEST = 5000
"""Slower motion would need hours for a few operations: the share then says whose time it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timer:
    """A time that a machine's kernel counts by its own clock, and its places, as a shell's pattern.

    `normal` in the unit that the places have.
    """

    path: str
    normal: int

    def script(self, times: float) -> str:
        """Shell: make it so many times as long, at each place that there is."""
        write = f'[ ! -e "$place" ] || echo {round(self.normal * times)} > "$place"'
        return f"for place in {self.path}; do {write}; done"


NAS_TIMERS = (
    Timer(path="/sys/module/zfs/parameters/zfs_txg_timeout", normal=5),
    Timer(path="/sys/module/zfs/parameters/zfs_delay_scale", normal=500_000),
    Timer(path="/sys/module/zfs/parameters/zfs_deadman_synctime_ms", normal=600_000),
    Timer(path="/sys/module/zfs/parameters/zfs_deadman_ziotime_ms", normal=300_000),
)
"""Seconds, nanoseconds, milliseconds (zfs(4))."""

CLIENT_TIMERS = (
    Timer(path="/proc/sys/vm/dirty_writeback_centisecs", normal=500),
    Timer(path="/proc/sys/vm/dirty_expire_centisecs", normal=3000),
    Timer(path="/sys/block/*/queue/io_timeout", normal=30_000),
)
"""Hundredths of a second (Documentation/admin-guide/sysctl/vm.rst). The last one has milliseconds: a
request of SCSI or NVMe may take so long (Documentation/ABI/stable/sysfs-block)."""


def timers_script(timers: tuple[Timer, ...], times: float) -> str:
    """Shell: all these timers in slow motion."""
    return " && ".join(timer.script(times) for timer in timers)


def in_real_time(end: JobEnd, times: float) -> JobEnd:
    """The end of a job that ran in slow motion, as it would be without."""
    return replace(
        end,
        run_ms=end.run_ms / times,
        mean_ms=end.mean_ms / times,
        p50_ms=end.p50_ms / times,
        p99_ms=end.p99_ms / times,
    )


def share_of_emulator(end: JobEnd, unmodelled: JobEnd) -> float:
    """The emulator's share in an operation's time, 0 to 1, for a job as it ran in slow motion.

    `unmodelled` is the same job without modelled disks and link: its time is the emulator's alone.
    """
    return min(end.operations_per_s / unmodelled.operations_per_s, 1.0)


def first_slow_motion(
    job: SpeedJob,
    unmodelled: JobEnd,
    profile: Profile,
    link: Link | None,
    *,
    syncs_every_write: bool = False,
) -> int:
    """The slow motion to try first: that of an operation that waits for the link and for the disk.

    An operation that waits for one of them needs a slower one, which `slower_motion` finds. A slower
    one than needed asks the kernels to wait for a link of a few kilobits a second, and they give up.
    `unmodelled`: the job without modelled disks and link. `profile`: that of the disk on which a
    synchronous write or a cold read waits. `syncs_every_write`: so does each other write, as with
    sync=always.
    """
    pattern = job.pattern
    is_synced = pattern is Pattern.SYNC_WRITE or (syncs_every_write and not pattern.is_read)
    modelled_s = _modelled_s(job, profile, link, is_synced=is_synced)
    return _times_for(modelled_s, 1 / unmodelled.operations_per_s)


def slower_motion(times: int, end: JobEnd, unmodelled: JobEnd) -> int:
    """The slow motion that is needed, by the end of the job in one of `times`; `times` if it is enough.

    It grows by a factor of 8 at most: where the emulator has most of the time, the rest is noise.
    """
    if share_of_emulator(end, unmodelled) <= _SHARE_ENOUGH:
        return times
    own_s = 1 / unmodelled.operations_per_s
    needed = _times_for((1 / end.operations_per_s - own_s) / times, own_s)
    return min(max(needed, times + 1), times * _GROWTH_MAX, SLOWEST)


def _modelled_s(job: SpeedJob, profile: Profile, link: Link | None, *, is_synced: bool) -> float:
    """The time of an operation by the model alone, with all requests at work."""
    bytes_ = job.block_kib * 1024
    time_s = 0.0
    if link is not None:
        transfer_s = bytes_ * 8 / link.rate_bits_per_s
        turn_s = (link.round_trip_us / 1e6 + transfer_s) / job.requests
        time_s += max(transfer_s, turn_s)
    if is_synced:
        time_s += (profile.write_us + profile.flush_us) / 1e6 / job.requests
    if is_synced or job.pattern.is_cold:
        time_s += bytes_ / 2**20 / profile.mib_per_s if profile.mib_per_s else 0.0
    if job.pattern is Pattern.COLD_RANDOM_READ:
        time_s += (profile.read_us + profile.seek_us) / 1e6 / job.threads
    return time_s


def _times_for(modelled_s: float, own_s: float) -> int:
    """The slow motion in which the emulator has the chosen share; 1 without a modelled time."""
    if modelled_s <= 0:
        return 1
    needed = own_s * (1 - _SHARE_CHOSEN) / _SHARE_CHOSEN / modelled_s
    return max(1, min(math.ceil(needed), SLOWEST))


_CONFIDENCE = 0.95
ROUNDS_MIN = 3
"""Fewer rounds give no interval: that of two is a factor of thousands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A geometric mean of positive figures, and its 95 % interval; None where rounds are too few."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def width(self) -> float:
        """The interval's upper end by its lower one; infinite without an interval."""
        return self.high / self.low if self.low and self.high else math.inf


def mean_of(figures: Sequence[float]) -> Estimate:
    """The geometric mean of one figure over rounds. Raises `ValueError` for one that is not positive."""
    return _estimate(np.array(figures, dtype=float))


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The ratio of two figures, each measured in the same rounds.

    Each round gives one ratio, so a slow round of the host touches both figures alike. Raises
    `ValueError` for different numbers of rounds, or for a figure that is not positive.
    """
    if len(over) != len(under):
        raise ValueError(f"{len(over)} rounds against {len(under)}")
    _must_be_positive(under)
    return _estimate(np.array(over, dtype=float) / np.array(under, dtype=float))


def _must_be_positive(figures: Sequence[float]) -> None:
    if not figures or not all(figure > 0 and math.isfinite(figure) for figure in figures):
        raise ValueError(f"no positive figures: {list(figures)}")


def _estimate(figures: np.ndarray) -> Estimate:
    _must_be_positive(figures.tolist())
    logs = np.log(figures)
    value = float(np.exp(logs.mean()))
    if len(figures) < ROUNDS_MIN:
        return Estimate(value=value)
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    # scipy.stats has it, too, and takes as long to import as a page takes to be written
    reach = error * float(stdtrit(len(logs) - 1, (1 + _CONFIDENCE) / 2))
    return Estimate(value=value, low=value / math.exp(reach), high=value * math.exp(reach))

"""Modelled links: their numbers, and slow motion against true speed.

Ratios of figures over rounds, and the coverage of their intervals.
"""

from __future__ import annotations

import math
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.speed.measured_records import job_end as _end
from torture.facts.recording.disks import Profile
from torture.features.speed.jobs.jobs import Link, SpeedJob, slowed
from torture.features.speed.jobs.slow_motion import (
    ROUNDS_MIN,
    SHARE_MAX,
    SLOWEST,
    Estimate,
    Timer,
    first_slow_motion,
    in_real_time,
    mean_of,
    ratio_of,
    share_of_emulator,
    slower_motion,
    timers_script,
)
from torture.features.speed.trade.measurements import digits, estimate_in_words
from torture.machines.lab.network.wire import DirectionCounts, LinkCounts, Pace

_CHOSEN = 0.08
"""The share that a motion is chosen for."""
_SYNC, _WRITE = SpeedJob.parse("syncwrite-4k-t1"), SpeedJob.parse("write-128k-t1")


@given(own_ms=st.floats(0.05, 50), modelled_ms=st.floats(0.01, 20))
@settings(max_examples=examples(200))
def test_the_first_motion_leaves_the_emulator_little(own_ms: float, modelled_ms: float) -> None:
    """By a simulated job: an operation takes the model's slowed time and the emulator's own."""
    unmodelled = _end(own_ms)
    chosen = first_slow_motion(_SYNC, unmodelled, Profile(write_us=modelled_ms * 1000), None)
    run = _end(modelled_ms * chosen + own_ms)
    if chosen < SLOWEST:
        assert share_of_emulator(run, unmodelled) <= SHARE_MAX + 1e-9
        assert in_real_time(run, chosen).mean_ms <= modelled_ms / (1 - SHARE_MAX) + 1e-9
        assert slower_motion(chosen, run, unmodelled) == chosen
    if 1 < chosen < SLOWEST:  # a quicker motion would leave it more
        quicker = _end(modelled_ms * (chosen - 1) + own_ms)
        assert share_of_emulator(quicker, unmodelled) > _CHOSEN - 1e-9


@given(own_ms=st.floats(0.05, 50), modelled_ms=st.floats(0.01, 20), first=st.integers(1, 500))
@settings(max_examples=examples(200))
def test_trial_runs_find_the_motion_that_an_operation_needs(
    own_ms: float, modelled_ms: float, first: int
) -> None:
    unmodelled, times = _end(own_ms), first
    for _ in range(12):
        last, times = times, slower_motion(times, _end(modelled_ms * times + own_ms), unmodelled)
        if times == last:
            break
        assert times <= min(8 * last, SLOWEST)
    share = share_of_emulator(_end(modelled_ms * times + own_ms), unmodelled)
    assert share <= SHARE_MAX or times == SLOWEST
    if times > first:  # a whole number above the needed one, and the rounding of floats
        assert times <= own_ms * (1 - _CHOSEN) / _CHOSEN / modelled_ms + 2


def test_noise_alone_does_not_ask_for_the_slowest_motion() -> None:
    """The emulator has all of the time, and this run was even quicker than the one without a model."""
    assert slower_motion(3, _end(0.9), _end(1.0)) == 4
    assert slower_motion(3, _end(1.001), _end(1.0)) == 24


def test_a_figure_in_real_time_is_multiplied() -> None:
    real = in_real_time(_end(40.0), 20)
    assert (real.mean_ms, real.p50_ms, real.p99_ms) == (2.0, 2.0, 2.0)
    assert real.operations_per_s == pytest.approx(500)
    assert real.mib_per_s == pytest.approx(500 * 4096 / 2**20)
    assert real.operations == 100


def test_each_link_has_a_motion_of_its_own() -> None:
    """128 KiB take 1.05 ms on 1 GbE, and a tenth of that on 10 GbE."""
    end, profile = _end(10.0, bytes_=1 << 17), Profile(write_us=1000)
    assert first_slow_motion(_WRITE, end, profile, None) == 1
    assert first_slow_motion(_WRITE, end, profile, Link.GBE1) == 110
    assert first_slow_motion(_WRITE, end, profile, Link.GBE10) == 1097


def test_a_job_of_one_request_waits_for_the_round_trip() -> None:
    """4 KiB take 233 us over 1 GbE with the round trip, and 33 us without."""
    job, by_four = SpeedJob.parse("randread-4k-t1"), SpeedJob.parse("randread-4k-t4")
    assert first_slow_motion(job, _end(1.0), Profile(), Link.GBE1) == 50
    assert first_slow_motion(by_four, _end(1.0), Profile(), Link.GBE1) == 198


def test_a_synchronous_write_waits_for_its_transfer_too() -> None:
    job, end = SpeedJob.parse("syncwrite-1024k-t1"), _end(11.0)
    assert first_slow_motion(job, end, Profile(mib_per_s=100), None) == 13
    assert first_slow_motion(job, end, Profile(mib_per_s=100, flush_us=20_000), None) == 5


def test_a_synchronous_write_waits_for_link_and_disk_at_first() -> None:
    """A motion for the link alone would make an operation on a hard disk take minutes."""
    profile = Profile(write_us=10_000)
    assert first_slow_motion(_SYNC, _end(1.0), profile, None) == 2
    assert first_slow_motion(_SYNC, _end(1.0), profile, Link.GBE10) == 2
    assert first_slow_motion(_SYNC, _end(1.0), Profile(), Link.GBE1) == 50
    assert first_slow_motion(SpeedJob.parse("syncwrite-4k-t4"), _end(9.0), profile, None) == 42


def test_each_write_waits_for_the_disk_where_all_are_synchronous() -> None:
    """Sixteen writes in a row share the wait of a hard disk. A read does not wait for it."""
    disk = Profile(write_us=8000, flush_us=8000)
    found = {
        name: first_slow_motion(SpeedJob.parse(name), _end(1.0), disk, None, syncs_every_write=True)
        for name in ("write-128k-t1", "randwrite-4k-t1", "read-128k-t1")
    }
    assert found == {"write-128k-t1": 12, "randwrite-4k-t1": 12, "read-128k-t1": 1}
    assert first_slow_motion(_WRITE, _end(1.0), disk, None) == 1


def test_a_cold_read_waits_for_its_disk_at_first() -> None:
    """A motion for the link alone left two reads of a hard disk in a run."""
    disk = Profile(seek_us=10_000, mib_per_s=200)
    random, row = SpeedJob.parse("coldrandread-4k-t1"), SpeedJob.parse("coldread-128k-t1")
    assert first_slow_motion(random, _end(1.0), disk, Link.GBE10) == 2
    assert first_slow_motion(row, _end(1.0), disk, None) == 19
    assert first_slow_motion(SpeedJob.parse("read-128k-t1"), _end(1.0), disk, None) == 1
    assert first_slow_motion(SpeedJob.parse("randread-4k-t1"), _end(1.0), disk, None) == 1


def test_without_a_model_there_is_no_slow_motion() -> None:
    assert first_slow_motion(_SYNC, _end(5.0), Profile(), None) == 1
    assert first_slow_motion(_SYNC, _end(5.0), Profile(write_us=0.01), None) == SLOWEST


def test_a_timer_is_a_whole_number_of_its_unit(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("sda", "nvme0n1")]
    for place in places:
        place.write_text("30000")
    timer = Timer(path=f"{tmp_path}/*", normal=30_000)
    for times, expected in ((20, "600000\n"), (1.5, "45000\n"), (1, "30000\n")):
        subprocess.run(["sh", "-c", timers_script((timer,), times)], check=True)
        assert [place.read_text() for place in places] == [expected, expected]


def test_a_timer_without_a_place_is_none(tmp_path: Path) -> None:
    """A client whose files are on NFS has no disk with a timeout."""
    script = timers_script((Timer(path=f"{tmp_path}/*", normal=5),) * 2, 2)
    subprocess.run(["sh", "-c", script], check=True)
    assert not [*tmp_path.iterdir()]


# Modelled links: their numbers, and slow motion against true speed.

LINKS = st.sampled_from(Link)
SLOWNESS = st.integers(1, 1000)
SIZES = st.integers(14, 9014)


def on_wire_bits(frame_bytes: int) -> int:
    """Preamble and start, content with padding, check sequence, gap."""
    padding = 0 if frame_bytes > 60 else 60 - frame_bytes
    return 8 * (7 + 1 + frame_bytes + padding + 4 + 12)


def test_a_slow_gigabit_link_is_of_this_speed() -> None:
    assert slowed(Link.GBE1, 20) == Pace(rate_bits_per_s=50_000_000, one_way_us=2000)


def test_true_speed_is_slow_motion_of_one() -> None:
    for link in Link:
        pace = slowed(link, 1)
        assert pace.rate_bits_per_s == link.rate_bits_per_s
        assert 2 * pace.one_way_us == link.round_trip_us


def test_fibre_channel_carries_400_megabytes_a_second() -> None:
    """In frames of 1514 bytes, of which TCP has 1448."""
    pace = slowed(Link.FC4, 1)
    assert 1448 / pace.time_on_wire_us(1514) == pytest.approx(400, rel=0.01)


@given(LINKS, SLOWNESS, SIZES)
def test_a_frame_takes_n_times_as_long(link: Link, n: int, frame_bytes: int) -> None:
    """Within the rounding of the rate to a bit a second."""
    pace = slowed(link, n)
    true_us = Fraction(on_wire_bits(frame_bytes) * 1_000_000, link.rate_bits_per_s)
    assert pace.time_on_wire_us(frame_bytes) == pytest.approx(float(n * true_us), rel=1e-5)
    assert pace.one_way_us * 2 == n * link.round_trip_us


@pytest.mark.parametrize("n", [0, -1])
def test_faster_than_true_speed_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        slowed(Link.GBE1, n)


def test_without_a_limit_a_frame_takes_no_time() -> None:
    assert Pace(rate_bits_per_s=0, one_way_us=5).time_on_wire_us(1514) == 0


def test_counts_are_read_back() -> None:
    counts = LinkCounts(
        from_nas=DirectionCounts(frames=3, bytes=180, drops=1),
        to_nas=DirectionCounts(frames=2, bytes=120, missed=4),
    )
    assert LinkCounts.from_json(counts.as_json()) == counts


_FIGURES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=9)


@given(_FIGURES, st.floats(0.1, 10))
@settings(max_examples=examples(60), deadline=None)
def test_a_constant_ratio_is_found_on_a_host_that_drifts(figures: list[float], by: float) -> None:
    """A slow round slows both figures."""
    estimate = ratio_of([figure * by for figure in figures], figures)
    assert estimate.value == pytest.approx(by)
    if len(figures) >= ROUNDS_MIN:
        assert estimate.low == pytest.approx(by)
        assert estimate.high == pytest.approx(by)
    else:
        assert estimate.low is estimate.high is None
        assert math.isinf(estimate.width)


@given(st.lists(st.floats(0.01, 1e4), min_size=ROUNDS_MIN, max_size=9))
@settings(max_examples=examples(40), deadline=None)
def test_an_interval_holds_its_estimate(figures: list[float]) -> None:
    estimate = mean_of(figures)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value * 1.001
    assert estimate.value * 0.999 <= estimate.high
    assert estimate.low * estimate.high == pytest.approx(estimate.value**2)
    assert min(figures) * 0.999 <= estimate.value <= max(figures) * 1.001


@pytest.mark.parametrize("figures", [[], [1.0, 0.0], [1.0, -1.0], [math.inf], [math.nan]])
def test_figures_that_are_not_positive_are_refused(figures: list[float]) -> None:
    with pytest.raises(ValueError, match="no positive figures"):
        mean_of(figures)
    with pytest.raises(ValueError, match="no positive figures"):
        ratio_of([1.0] * len(figures), figures)


def test_rounds_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="2 rounds against 1"):
        ratio_of([1.0, 2.0], [1.0])


@pytest.mark.parametrize("rounds", [3, 4, 8])
def test_the_intervals_cover(rounds: int) -> None:
    """In 1,000 simulations of figures with a spread of a tenth: 95 %, three errors less at most."""
    generator = np.random.default_rng(7)
    estimates = [mean_of(np.exp(generator.normal(0, 0.1, rounds)).tolist()) for _ in range(1000)]
    covered = sum((one.low or 2) <= 1 <= (one.high or 0) for one in estimates)
    assert 0.95 - 3 * 0.007 < covered / 1000 < 0.95 + 3 * 0.007


def test_the_width_of_an_estimate_is_a_ratio() -> None:
    assert Estimate(value=2.0, low=1.0, high=4.0).width == 4


@pytest.mark.parametrize(
    ("value", "count", "words"),
    [(3.14159, 2, "3.1"), (0.0025, 2, "0.0025"), (1234.5, 2, "1,234"), (0.3, 2, "0.30")],
)  # fmt: skip
def test_digits(value: float, count: int, words: str) -> None:
    assert digits(value, count) == words


@given(st.floats(1e-6, 1e9), st.floats(1, 5), st.floats(1, 5))
def test_a_printed_interval_covers_the_exact_one(value: float, down: float, up: float) -> None:
    estimate = Estimate(value=value, low=value / down, high=value * up)
    found = re.search(r"\((\S+) to (\S+)\)", estimate_in_words(estimate, "ms"))
    assert found
    low, high = (float(end.replace(",", "")) for end in found.groups())
    assert low <= value / down * (1 + 1e-6)
    assert high >= value * up * (1 - 1e-6)

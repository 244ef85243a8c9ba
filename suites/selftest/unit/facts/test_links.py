"""Modelled links: their numbers, and slow motion against true speed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.facts.speed.link import DirectionCounts, Link, LinkCounts, Pace, slowed

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


@given(LINKS, SLOWNESS)
def test_the_product_of_rate_and_delay_stays(link: Link, n: int) -> None:
    true, slow = slowed(link, 1), slowed(link, n)
    assert slow.rate_bits_per_s * slow.one_way_us == pytest.approx(
        true.rate_bits_per_s * true.one_way_us, rel=1e-5
    )


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

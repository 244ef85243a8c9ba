"""A modelled link keeps its rate and its delay, drops as a switch does, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suites.selftest.shelf.wire_scenes import play
from torture.machines.lab.network.wire import Pace

_RATE_TOLERANCE = 0.05
_SLOW = 8_000_000
_QUEUE_BYTES_MIN = 256 * 1024
_PLAYS_MAX = 4


def _tolerance_us(one_way_us: float) -> float:
    return max(300, 0.1 * one_way_us)


def _undisturbed(scene: Callable[[], Any], is_in_time: Callable[[Any], bool]) -> Any:
    """The result of a scene, again where a busy host made frames late; a fault is there each time.

    A first frame that is late makes a rate look high.
    """
    for _ in range(_PLAYS_MAX):
        if is_in_time(seen := scene()):
            return seen
    raise AssertionError(f"late in each of {_PLAYS_MAX} plays: {seen}")


@pytest.mark.parametrize(("size", "frames"), [(1514, 160), (60, 2000), (42, 2000)])
def test_frames_come_at_the_asked_rate(size: int, frames: int) -> None:
    """Framing and padding count, else small frames would come faster."""
    on_wire_us = Pace(rate_bits_per_s=_SLOW, one_way_us=0).time_on_wire_us(size)
    expected_s = (frames - 1) * on_wire_us / 1e6
    seen = _undisturbed(
        lambda: play("burst", rate_bits_per_s=_SLOW, one_way_us=1000, frames=frames, size=size),
        lambda seen: abs(seen["took_s"] / expected_s - 1) <= _RATE_TOLERANCE,
    )
    assert seen["numbers"] == list(range(frames))
    assert seen["counts"]["from_nas"] == {
        "frames": frames + 1, "bytes": (frames + 1) * size, "drops": 0, "missed": 0
    }  # fmt: skip
    assert seen["counts"]["to_nas"]["drops"] == 0


def test_a_fast_link_keeps_its_rate_too() -> None:
    """400 Mb/s, of which a frame takes 31 us: less than the program rests between two turns."""
    rate = 400_000_000

    def measured(seen: Any) -> float:
        return (len(seen["numbers"]) - 1) * 1538 * 8 / float(seen["took_s"])

    seen = _undisturbed(
        lambda: play("burst", rate_bits_per_s=rate, one_way_us=10_000, frames=1200, size=1514),
        lambda seen: abs(measured(seen) / rate - 1) <= _RATE_TOLERANCE,
    )
    assert len(seen["numbers"]) > 600, "too few to measure"


@pytest.mark.parametrize(("one_way_us", "size"), [(0, 60), (2000, 60), (2000, 1514), (20_000, 60)])
def test_a_frame_takes_the_asked_delay(one_way_us: int, size: int) -> None:
    """Frames with gaps between them do not wait for each other, and many are on their way at once."""
    pace = Pace(rate_bits_per_s=50_000_000, one_way_us=one_way_us)
    expected = one_way_us + pace.time_on_wire_us(size)
    delays = _undisturbed(
        lambda: play(
            "spaced", rate_bits_per_s=50_000_000, one_way_us=one_way_us, frames=25, size=size
        ),
        lambda delays: max(delays) <= expected + _tolerance_us(one_way_us),
    )
    assert min(delays) >= expected


def test_directions_are_independent_and_keep_their_order() -> None:
    expected = 1000 + Pace(rate_bits_per_s=_SLOW, one_way_us=0).time_on_wire_us(60)
    seen = _undisturbed(
        lambda: play("independent", rate_bits_per_s=_SLOW, one_way_us=1000, frames=160),
        lambda seen: seen["is_busy"] and seen["delay_us"] <= expected + _tolerance_us(1000),
    )
    assert seen["delay_us"] >= expected
    assert seen["there"] == list(range(160))
    assert seen["back"] == list(range(20))
    assert seen["counts"]["to_nas"] == {"frames": 20, "bytes": 1200, "drops": 0, "missed": 0}


@pytest.mark.parametrize(
    ("rate_bits_per_s", "one_way_us", "frames", "queue_bytes"),
    [
        (_SLOW, 1000, 300, _QUEUE_BYTES_MIN),
        (100_000_000, 50_000, 1500, 2 * 100_000_000 // 8 * 50_000 // 1_000_000),
    ],
)
def test_a_full_queue_drops_the_newest_and_counts_them(
    rate_bits_per_s: int, one_way_us: int, frames: int, queue_bytes: int
) -> None:
    """The queue has 256 KiB, or two products of rate and delay where these are more.

    A busy host may take frames from the tap later than they were sent: more have left by then.
    """
    pace = {"rate_bits_per_s": rate_bits_per_s, "one_way_us": one_way_us}
    seen = _undisturbed(
        lambda: play("burst", **pace, frames=frames, size=1514),
        lambda seen: len(seen["numbers"]) < frames,
    )
    came = len(seen["numbers"])
    room = queue_bytes // 1538
    left_meanwhile = seen["sending_s"] * rate_bits_per_s / 8 / 1538
    assert seen["numbers"][:room] == list(range(room))
    assert room <= came <= 1.25 * room + left_meanwhile
    assert seen["counts"]["from_nas"]["drops"] == frames - came
    assert seen["counts"]["from_nas"]["missed"] == 0
    assert seen["last"] == [frames], "there is room again"


def test_without_a_limit_all_pass_at_once() -> None:
    """As fast as they are sent, within the time that this host takes."""
    seen = play("burst", rate_bits_per_s=0, one_way_us=0, frames=1000, size=1514)
    assert seen["numbers"] == list(range(1000))
    assert seen["took_s"] < 0.2


def test_it_ends_with_its_owner() -> None:
    assert play("owner_dies") is True


def test_it_ends_with_its_input() -> None:
    assert play("input_ends") == 0


def test_failures_are_in_words() -> None:
    said = play("refusals")
    assert "no tap c0" in said["missing"]
    assert "ended with -9" in said["killed"]


def test_a_slowed_link_is_between_the_nas_and_others_and_goes_again() -> None:
    seen = _undisturbed(
        lambda: play("bridged", one_way_us=5000),
        lambda seen: (
            max(seen["fast"] + seen["fast again"]) < 1000
            and max(seen["slow"] + seen["plugged"]) <= 5000 + _tolerance_us(5000)
        ),
    )
    assert min(seen["slow"] + seen["plugged"]) >= 5000
    assert seen["counts"]["from_nas"]["frames"] >= 9
    assert seen["counts"]["to_nas"]["frames"] >= 9
    assert "slowed already" in seen["twice"]
    assert [seen[name] for name in ("unplugged", "still unplugged", "unplugged after all")] == [
        False, False, False
    ]  # fmt: skip
    assert seen["plugged after all"]
    assert seen["restored"]


def test_the_network_is_restored_after_failures() -> None:
    seen = play("bridged_failures")
    assert seen["raised"] == "the body failed"
    assert "ended with -9" in seen["killed"]
    assert seen["raised: restored"]
    assert seen["killed: restored"]

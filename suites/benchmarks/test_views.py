"""Opening a crash state of a large recording: nothing is copied, so it takes no time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

import pytest

from suites.benchmarks.figures import Figures, Spread
from suites.benchmarks.recordings import BLOCK_BYTES, FLUSH_EVERY, disk_bytes_for, offsets, record
from suites.benchmarks.settings import DISK, GIB, Settings, skip_without_room
from torture.facts.recording.crash_state import Policy

_OPEN_MS_MAX = 50.0
_COPY_PER_OPEN_MIN = 100.0
_WRITES_MEANT = 1_000_000
_TURNS = 5
_OPENINGS_A_TURN = 3
_POLICIES = (Policy.ALL, Policy.TORN, Policy.LYING)
_CUTS = ("at the end", "in the middle")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Milliseconds: of opening for the first time, of opening each view, of a copy."""

    writes: int
    flushes: int
    disk_bytes: int
    first_ms: float
    empty_ms: tuple[float, ...]
    views_ms: Mapping[tuple[Policy, str], list[float]]
    copies_ms: tuple[float, ...]


@pytest.fixture(scope="module")
def measured(make_folder: Callable[[Path], Path], settings: Settings) -> Measured:
    """All measurements in turns, so that a disturbance of the host hits openings and copies alike."""
    writes = settings.view_writes
    skip_without_room(DISK, writes * BLOCK_BYTES + 3 * disk_bytes_for(writes) + GIB)
    recorded = record(make_folder(DISK), writes=writes)
    cuts = dict(zip(_CUTS, (recorded.last, recorded.last // 2), strict=True))
    whole = recorded.view(Policy.ALL, recorded.last)
    first_ms, _ = recorded.open(whole, offset=0)
    recorded.make_image(whole)
    views = {
        (policy, cut): recorded.view(policy, cuts[cut]) for policy, cut in product(_POLICIES, _CUTS)
    }
    views_ms: dict[tuple[Policy, str], list[float]] = {key: [] for key in views}
    empty_ms: list[float] = []
    copies_ms: list[float] = []
    for offset in offsets(recorded.disk_bytes, _TURNS * _OPENINGS_A_TURN):
        if len(empty_ms) % _OPENINGS_A_TURN == 0:
            copies_ms.append(recorded.copy_image())
        empty_ms.append(recorded.open(None, offset=offset)[0])
        for key, view in views.items():
            taken_ms, block = recorded.open(view, offset=offset)
            views_ms[key].append(taken_ms)
            if view == whole:
                assert block == recorded.block_of_image(offset), "the view is not what was copied"
    return Measured(
        writes=recorded.writes,
        flushes=recorded.flushes,
        disk_bytes=recorded.disk_bytes,
        first_ms=first_ms,
        empty_ms=tuple(empty_ms),
        views_ms=views_ms,
        copies_ms=tuple(copies_ms),
    )


def test_the_recording_is_as_large_as_meant(
    measured: Measured, figures: Figures, settings: Settings
) -> None:
    figures.say(
        "opening views, the recording",
        f"{measured.writes:,} writes of 4 KiB and {measured.flushes:,} flushes on a disk of "
        f"{measured.disk_bytes / GIB:.1f} GiB, in {DISK}",
    )
    assert measured.writes == settings.view_writes
    assert measured.flushes >= settings.view_writes // FLUSH_EVERY - 1


def test_the_index_is_built_once(measured: Measured, figures: Figures) -> None:
    figures.say("opening a view for the first time, which builds the index", _ms(measured.first_ms))
    later_ms = median(measured.views_ms[Policy.ALL, _CUTS[0]])
    figures.say(
        "opening an empty disk, for comparison", Spread.of(measured.empty_ms).text(2) + " ms"
    )
    assert later_ms < measured.first_ms


@pytest.mark.parametrize("cut", _CUTS)
@pytest.mark.parametrize("policy", _POLICIES)
def test_a_view_opens_at_once(
    policy: Policy, cut: str, measured: Measured, figures: Figures
) -> None:
    figures.below(
        f"opening a view, {policy}, cut {cut}",
        measured.views_ms[policy, cut],
        _OPEN_MS_MAX,
        unit="ms",
    )


def test_a_copy_of_the_image_takes_far_longer(
    measured: Measured, figures: Figures, settings: Settings
) -> None:
    """Each copy against the median opening."""
    if settings.view_writes < _WRITES_MEANT:
        pytest.skip(f"this bound holds for a recording of {_WRITES_MEANT:,} writes only")
    figures.say("copying the image", Spread.of(measured.copies_ms).text(0) + " ms")
    slowest_ms = max(median(taken_ms) for taken_ms in measured.views_ms.values())
    figures.at_least(
        "copying the image / opening a view",
        [copy_ms / slowest_ms for copy_ms in measured.copies_ms],
        _COPY_PER_OPEN_MIN,
        detail=f"openings: {_ms(slowest_ms)}, the slowest median of all policies and cuts",
    )


def _ms(value: float) -> str:
    return f"{value:,.1f} ms"

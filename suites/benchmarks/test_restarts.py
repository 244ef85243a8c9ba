"""Whether a killed machine can be resumed at once, every time, and the time this takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from suites.benchmarks.figures import Figures, Spread
from suites.benchmarks.places import DISK
from suites.benchmarks.settings import Settings
from suites.selftest.machinery.sandbox import in_sandbox

_FIRST_BOOT_S = 300
_ROUND_S = 10
"""At most, on a host with other work to do."""


# its own deadline grows with the rounds
@pytest.mark.timeout(0)
def test_a_killed_machine_is_resumed_at_once_without_a_refusal(
    figures: Figures, make_folder: Callable[[Path], Path], settings: Settings
) -> None:
    folder = make_folder(DISK)
    played = in_sandbox(
        "suites.benchmarks.restarts:restarts",
        scratch=folder / "nas",
        log=folder / "nas.log",
        deadline_s=_FIRST_BOOT_S + settings.restarts * _ROUND_S,
    )
    started = Spread.of(played["started_s"])
    figures.say(
        f"{settings.restarts} restarts of the NAS after SIGKILL",
        f"{len(played['refusals'])} refused; {started.text(2)} s from one to the next",
    )
    assert played["refusals"] == []
    assert started.rounds == settings.restarts

"""Without a NAS nothing is lost on a sound disk: a loss behind one is the NAS's, or its disks'.

And without a flush something is: the same load, disk and check do see what is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suites.selftest.machinery.no_nas import FILESYSTEMS, IGNORING_CUTS, SOUND_CUTS
from suites.selftest.machinery.sandbox import Stage
from torture.oracles.verdict.guarantee import Verdict

_DEADLINE_S = 600


@pytest.fixture(scope="module")
def cuts(stage: Stage, vm_scratch: Path) -> Any:
    scene = "suites.selftest.machinery.no_nas:cuts"
    return stage.play(scene, scratch=vm_scratch / "d", deadline_s=_DEADLINE_S)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_client_on_a_sound_disk_loses_nothing(cuts: Any, filesystem: str) -> None:
    """A volatile cache that loses any part of what no flush covers."""
    sound = cuts[filesystem]["sound"]
    assert len(sound) == SOUND_CUTS
    for cut in sound:
        assert cut["verdicts"] == [Verdict.INTACT, Verdict.INTACT], cut
        assert cut["lost"] == 0
        assert cut["acknowledged"] > 0
        assert cut["findings"] == []
        assert cut["checker_is_kept"]


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_disk_that_ignores_flushes_is_seen_to_lose(cuts: Any, filesystem: str) -> None:
    ignoring = cuts[filesystem]["ignoring"]
    assert len(ignoring) == IGNORING_CUTS
    for cut in ignoring:
        assert cut["unflushed"] > 0
        assert any(verdict and Verdict(verdict).is_loss for verdict in cut["verdicts"]), cut

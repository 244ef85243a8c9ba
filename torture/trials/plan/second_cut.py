"""A second cut, after the client has lived on: later acknowledged data must survive, too (pure)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from torture.facts.evidence.documents import Document
from torture.facts.recording.crash_state import DiskState
from torture.facts.recording.disks import ShelfDisk
from torture.trials.plan.survivors import draw_disk_states

_SHARE = 0.25
"""The share of second cuts among the trials whose client lives on."""
_EARLIEST_SHARE_OF_LIFE = 0.25


class SecondCut(Document, frozen=True, kw_only=True):
    """NAS and client lose power `after_ms` after the client went on.

    `seed` and `survivors` decide which requests of the NAS since its return the disks keep.
    """

    after_ms: float
    seed: int
    survivors: Mapping[str, DiskState]


def draw_second_cut(
    disks: Sequence[ShelfDisk], *, seed: int, survive_ms: int, draw: int
) -> SecondCut | None:
    """The second cut of one trial in four, within the time for which its client lives on."""
    generator = random.Random(f"second cut/{seed}")
    if generator.random() >= _SHARE:
        return None
    second_seed = generator.getrandbits(64)
    return SecondCut(
        after_ms=round(generator.uniform(_EARLIEST_SHARE_OF_LIFE, 1) * survive_ms, 3),
        seed=second_seed,
        survivors=draw_disk_states(disks, seed=second_seed, draw=draw),
    )

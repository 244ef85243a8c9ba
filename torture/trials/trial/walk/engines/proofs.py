"""States that need no recovery, for an earlier one has read the same bytes (pure).

A recovery depends on the bytes that it reads. Suppose that a state has the same bytes at each place
that the recovery of another one has read. Then its recovery ends with the same content of the volume.
ZFS may choose another copy of a block, by chance. It accepts a copy by its checksum alone, so it comes
to the same content (module/zfs/vdev_mirror.c). Where no copy fits, it has read all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from torture.facts.recording.crash_state import CrashState
from torture.facts.states.origins import Origins, Pages, Sectors
from torture.trials.trial.walk.engines.engine import Recovered

_KNOWN_MAX = 2000
"""A recovery keeps some 200 KB. Of more recoveries, the one that proved nothing for longest goes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A recovery, and the origins of all sectors that it has read, by disk."""

    recovered: Recovered
    read: tuple[tuple[str, Pages, Sectors], ...]


class Proofs:
    """The recoveries so far. Pages with the same bytes in all states are left out of comparisons."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._known: list[_Known] = []

    def add(self, state: CrashState, recovered: Recovered, reads: Mapping[str, Pages]) -> None:
        """Remember the end of a state's recovery, and the pages of each disk that it has read."""
        self._origins.turn(state)
        read = []
        for disk, pages in reads.items():
            differing = self._origins.differing(disk, pages)
            read.append((disk, differing, self._origins.of(disk, differing)))
        self._known.append(_Known(recovered=recovered, read=tuple(read)))
        del self._known[:-_KNOWN_MAX]

    def find(self, state: CrashState) -> Recovered | None:
        """The end of a recovery that read nothing else than this state has; None without one."""
        self._origins.turn(state)
        for place in reversed(range(len(self._known))):
            if self._has_read_the_same(self._known[place]):
                known = self._known.pop(place)
                self._known.append(known)  # the next state is likely to be like this one
                return known.recovered
        return None

    def _has_read_the_same(self, known: _Known) -> bool:
        return all(
            np.array_equal(self._origins.of(disk, pages), sectors)
            for disk, pages, sectors in known.read
        )

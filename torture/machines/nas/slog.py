"""The pool's log devices: their disks, their words for `zpool create`, and the losses of a cut."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torture.choices.matrix.axes import SLOG, SLOG_CLASS
from torture.choices.matrix.cells import Cell
from torture.facts.recording.disks import ShelfDisk
from torture.machines.nas.devices import profile_of

_LOG_MIB = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class SlogLayout:
    """Dedicated disks, and the words that end the `zpool create` line, with disks by their serials."""

    disks: tuple[ShelfDisk, ...]
    vdev_words: tuple[str, ...]


def slog_layout(cell: Cell) -> SlogLayout:
    """The log devices of a cell: a mirror of several, of the cell's class."""
    disks = tuple(
        ShelfDisk(
            serial=f"slog{number}",
            size_mib=_LOG_MIB,
            persistence=persistence,
            profile=profile_of(cell[SLOG_CLASS]),
        )
        for number, persistence in enumerate(cell[SLOG].legs)
    )
    kind = () if not disks else ("log",) if len(disks) == 1 else ("log", "mirror")
    return SlogLayout(disks=disks, vdev_words=(*kind, *(disk.serial for disk in disks)))


def gone_at_cut(cell: Cell, seed: int) -> frozenset[str]:
    """The serials of the disks that are gone after the cut of the trial with this seed."""
    serials = [disk.serial for disk in slog_layout(cell).disks]
    count = cell[SLOG].gone_at_cut
    if count == len(serials):
        return frozenset(serials)
    generator = random.Random(f"gone/{seed}")
    left = list(serials)
    return frozenset(left.pop(left.index(generator.choice(left))) for _ in range(count))

"""The pool's log devices: which disks they take, how `zpool create` is told, which a cut takes away."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torture.matrix.axes import Slog, SlogClass
from torture.matrix.cells import Cell
from torture.nas.devices import profile_of
from torture.recording.disks import Persistence, ShelfDisk

_LOG_MIB = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class SlogLayout:
    """Disks of their own, and the words that end the `zpool create` line, disks by their serials."""

    disks: tuple[ShelfDisk, ...]
    vdev_words: tuple[str, ...]


_LEGS: dict[Slog, tuple[Persistence, ...]] = {
    Slog.NONE: (),
    Slog.PLP: (Persistence.PLP,),
    Slog.VOLATILE: (Persistence.VOLATILE,),
    Slog.LYING: (Persistence.LYING,),
    # the leg that stays is no better than what users mirror for safety
    Slog.MIRROR: (Persistence.VOLATILE, Persistence.VOLATILE),
    # whatever it keeps, it is gone
    Slog.LOST: (Persistence.PLP,),
}


def slog_layout(slog: Slog, slog_class: SlogClass) -> SlogLayout:
    """The layout of a choice on the SLOG axis, with devices of this class."""
    disks = tuple(
        ShelfDisk(
            serial=f"slog{number}",
            size_mib=_LOG_MIB,
            persistence=persistence,
            profile=profile_of(slog_class),
        )
        for number, persistence in enumerate(_LEGS[slog])
    )
    kind = {0: (), 1: ("log",), 2: ("log", "mirror")}[len(disks)]
    return SlogLayout(disks=disks, vdev_words=(*kind, *(disk.serial for disk in disks)))


def gone_at_cut(cell: Cell, seed: int) -> frozenset[str]:
    """The serials of the disks that are not there any more after the cut of the trial of this seed."""
    serials = [disk.serial for disk in slog_layout(cell.slog, cell.slog_class).disks]
    match cell.slog:
        case Slog.LOST:
            return frozenset(serials)
        case Slog.MIRROR:
            return frozenset({random.Random(f"gone/{seed}").choice(serials)})
        case _:
            return frozenset()

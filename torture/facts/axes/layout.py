"""The pool's data disks."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, choices_of
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


class Layout(StrEnum):
    """The layout of the data disks' vdev."""

    SINGLE = "single"
    MIRRORED = "mirrored"
    RAIDZ1 = "raidz1"
    RAIDZ2 = "raidz2"
    DRAID1 = "draid1"

    @property
    def splits_blocks(self) -> bool:
        """Whether each block is split over several disks, rather than whole on each."""
        return self in {Layout.RAIDZ1, Layout.RAIDZ2, Layout.DRAID1}


_WORDS = {
    Layout.SINGLE: ("one data disk", ""),
    Layout.MIRRORED: ("mirrored data disks", "two-way"),
    Layout.RAIDZ1: ("raidz1 of three disks", "three disks"),
    Layout.RAIDZ2: ("raidz2 of four disks", "four disks"),
    Layout.DRAID1: ("draid1 of four disks", "four disks, one of them spare"),
}
_JOINS = {
    Layout.SINGLE: EVERY_SWEEP - {Sweep.ADMINISTRATION_OF_MIRRORS, Sweep.ADMINISTRATION_OF_RAIDZ},
    Layout.MIRRORED: frozenset({Sweep.LAYOUTS, Sweep.ADMINISTRATION_OF_MIRRORS}),
    Layout.RAIDZ1: frozenset({Sweep.LAYOUTS, Sweep.ADMINISTRATION_OF_RAIDZ}),
}

AXIS = Axis(
    field="layout",
    noun="Layout",
    title="pool",
    place=50,
    default=Layout.SINGLE,
    choices=choices_of(_WORDS, _JOINS),
)

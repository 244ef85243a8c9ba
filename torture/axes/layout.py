"""The pool's data disks."""

from __future__ import annotations

from enum import StrEnum

from torture.axes.axis import Axis, Choice
from torture.axes.sweeps import EVERY_SWEEP, Sweep


class Layout(StrEnum):
    """How the data disks become a vdev."""

    SINGLE = "single"
    MIRRORED = "mirrored"
    RAIDZ1 = "raidz1"


_WORDS = {
    Layout.SINGLE: ("one data disk", ""),
    Layout.MIRRORED: ("mirrored data disks", "two-way"),
    Layout.RAIDZ1: ("raidz1 of three disks", "three disks"),
}

AXIS = Axis(
    field="layout",
    noun="Layout",
    title="pool",
    place=50,
    default=Layout.SINGLE,
    choices=tuple(
        Choice(
            name=layout.value,
            value=layout,
            words=words,
            explained=explained,
            joins=EVERY_SWEEP if layout is Layout.SINGLE else frozenset({Sweep.LAYOUTS}),
        )
        for layout, (words, explained) in _WORDS.items()
    ),
)

"""The persistence of the data disks across a power cut."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


class Disks(StrEnum):
    """The persistence of the data disks."""

    PLP = "plpdisks"
    """Power-loss-protected: they keep all completed writes."""
    VOLATILE = "volatiledisks"
    """They keep all writes that a flush covered, like most disks."""
    LYING = "lyingdisks"
    """Not even all covered ones: they acknowledge flushes without doing them."""


_WORDS = {
    Disks.PLP: ("data disks power-loss-protected", ""),
    Disks.VOLATILE: ("data disks with volatile cache", ""),
    Disks.LYING: ("data disks lie about flushes", "as for the SLOG"),
}

AXIS = Axis(
    field="disks",
    noun="Disks",
    title="data disks",
    place=60,
    default=Disks.VOLATILE,
    choices=tuple(
        Choice(
            name=disks.value,
            value=disks,
            words=words,
            explained=explained,
            joins=EVERY_SWEEP if disks is Disks.VOLATILE else frozenset({Sweep.DATA_DISKS}),
        )
        for disks, (words, explained) in _WORDS.items()
    ),
)

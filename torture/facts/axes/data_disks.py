"""The persistence of the data disks across a power cut."""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep
from torture.facts.recording.disks import Persistence

_USUAL = Persistence.VOLATILE
_WORDS = {
    Persistence.PLP: ("data disks power-loss-protected", ""),
    Persistence.VOLATILE: ("data disks with volatile cache", ""),
    Persistence.LYING: ("data disks lie about flushes", "as for the SLOG"),
}

AXIS = Axis(
    field="disks",
    noun="Disks",
    title="data disks",
    place=60,
    default=f"{_USUAL}disks",
    choices=tuple(
        Choice(
            name=f"{persistence}disks",
            value=persistence,
            words=words,
            explained=explained,
            joins=EVERY_SWEEP if persistence is _USUAL else frozenset({Sweep.DATA_DISKS}),
        )
        for persistence, (words, explained) in _WORDS.items()
    ),
)

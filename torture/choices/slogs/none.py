"""No log device: the intent log lies on the data disks."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep

CHOICE: Choice[SlogKind] = Choice(
    name="noslog",
    value=SlogKind(legs=()),
    words="no SLOG",
    joins=EVERY_SWEEP - {Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS, Sweep.ADMINISTRATION_OF_LOGS},
    place=0,
)

"""A log device with power-loss protection keeps every completed write."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="plp",
    value=SlogKind(legs=(Persistence.PLP,)),
    words="SLOG power-loss-protected",
    explained="power-loss-protected",
    joins=frozenset(
        {
            Sweep.USUAL,
            Sweep.LOG_DEVICES_AND_FILESYSTEMS,
            Sweep.LOG_SPEEDS,
            Sweep.ADMINISTRATION_OF_LOGS,
        }
    ),
    place=1,
)

"""A log device that honours flush, and loses unflushed writes."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="volatile",
    value=SlogKind(legs=(Persistence.VOLATILE,)),
    words="SLOG with volatile cache",
    explained="honours flush",
    joins=frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=2,
)

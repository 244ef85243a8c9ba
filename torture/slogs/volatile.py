"""A log device that honours flush, and loses what no flush covered."""

from __future__ import annotations

from torture.axes.axis import Choice
from torture.axes.sweeps import Sweep
from torture.recording.disks import Persistence
from torture.slogs.protocol import SlogKind

CHOICE: Choice[SlogKind] = Choice(
    name="volatile",
    value=SlogKind(legs=(Persistence.VOLATILE,)),
    words="SLOG with volatile cache",
    explained="honours flush",
    joins=frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=2,
)

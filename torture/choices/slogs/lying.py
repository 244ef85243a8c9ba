"""A log device that acknowledges flushes it has not done."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="lying",
    value=SlogKind(legs=(Persistence.LYING,), is_forgetful=True),
    words="SLOG lies about flushes",
    explained="acknowledges flushes it has not done",
    joins=frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=3,
)

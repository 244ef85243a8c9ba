"""The only log device is gone after the cut, whatever it kept."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="lost",
    value=SlogKind(legs=(Persistence.PLP,), gone_at_cut=1, is_forgetful=True),
    words="SLOG dies in the cut",
    explained="gone after the cut",
    joins=frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=5,
)

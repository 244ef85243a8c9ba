"""Two log devices, one of them gone after the cut.

The leg that stays has a volatile cache, like the devices that users mirror for safety.
"""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="mirror",
    value=SlogKind(legs=(Persistence.VOLATILE, Persistence.VOLATILE), gone_at_cut=1),
    words="SLOG mirrored, one leg dies",
    explained="two, one of them gone after the cut",
    joins=frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=4,
)

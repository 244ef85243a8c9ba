"""Three mirrored log devices with power-loss protection, one of which is gone after the cut."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="triple",
    value=SlogKind(legs=(Persistence.PLP,) * 3, gone_at_cut=1),
    words="SLOG of three mirrored devices, one of which dies",
)

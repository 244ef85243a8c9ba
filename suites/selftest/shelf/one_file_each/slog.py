"""Three log devices, two of which go with the cut."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.recording.disks import Persistence

CHOICE: Choice[SlogKind] = Choice(
    name="dummyslog",
    value=SlogKind(legs=(Persistence.PLP,) * 3, gone_at_cut=2),
    words="SLOG of a dummy kind",
)

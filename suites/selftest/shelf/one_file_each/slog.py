"""Three log devices, two of which go with the cut."""

from __future__ import annotations

from torture.axes.axis import Choice
from torture.recording.disks import Persistence
from torture.slogs.protocol import SlogKind

CHOICE: Choice[SlogKind] = Choice(
    name="dummyslog",
    value=SlogKind(legs=(Persistence.PLP,) * 3, gone_at_cut=2),
    words="SLOG of a dummy kind",
)

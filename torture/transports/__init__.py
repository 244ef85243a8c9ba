"""How the volume leaves the NAS and reaches the client: one file a transport. Pure."""

from __future__ import annotations

from torture.axes.axis import Axis, Choice
from torture.discovery import offered
from torture.transports.protocol import Transport

CHOICES: tuple[Choice[Transport], ...] = offered(__name__, "CHOICE")

AXIS = Axis(
    field="transport",
    noun="Transport",
    title="transport",
    place=10,
    choices=tuple(sorted(CHOICES, key=lambda choice: choice.place)),
)

PORTS = tuple(sorted({port for choice in CHOICES for port in choice.value.ports}))
"""Of all transports: a NAS is saved once, before anybody knows which one it will offer."""

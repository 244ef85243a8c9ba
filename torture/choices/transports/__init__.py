"""The path of the volume from the NAS to the client, one file a protocol. Pure."""

from __future__ import annotations

from torture.choices.transports.protocol import Transport
from torture.discovery import offered
from torture.facts.axes.axis import Axis, Choice

CHOICES: tuple[Choice[Transport], ...] = offered(__name__, "CHOICE")

AXIS = Axis(
    field="transport",
    noun="Transport",
    title="transport",
    place=10,
    choices=tuple(sorted(CHOICES, key=lambda choice: choice.place)),
)

FORWARDED_PORTS = tuple(
    sorted(
        {
            port
            for choice in CHOICES
            if not choice.value.traits.needs_bridge
            for port in choice.value.traits.ports
        }
    )
)
"""The ports that a user-mode network forwards. A NAS is saved once, before its transport is chosen."""

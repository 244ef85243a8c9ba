"""The kinds of the pool's log devices. Pure."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.discovery import offered
from torture.facts.axes.axis import Axis, Choice

CHOICES: tuple[Choice[SlogKind], ...] = offered(__name__, "CHOICE")

AXIS = Axis(
    field="slog",
    noun="Slog",
    title="SLOG",
    place=30,
    is_always_shown=True,
    choices=tuple(sorted(CHOICES, key=lambda choice: choice.place)),
)

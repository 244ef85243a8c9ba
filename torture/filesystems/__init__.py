"""What the client keeps on its disk: one file a filesystem. Pure."""

from __future__ import annotations

from torture.axes.axis import Axis, Choice
from torture.discovery import offered
from torture.filesystems.protocol import Filesystem

CHOICES: tuple[Choice[Filesystem], ...] = offered(__name__, "CHOICE")

AXIS = Axis(
    field="filesystem",
    noun="Filesystem",
    title="filesystem",
    place=70,
    choices=tuple(sorted(CHOICES, key=lambda choice: choice.place)),
)

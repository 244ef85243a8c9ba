"""The filesystems on the client's disk, one file each. Pure."""

from __future__ import annotations

from torture.choices.filesystems.protocol import FILES, Filesystem
from torture.discovery import offered
from torture.facts.axes.axis import Axis, Choice, Chosen

CHOICES: tuple[Choice[Filesystem], ...] = offered(__name__, "CHOICE")


def _why_meaningless(chosen: Chosen) -> str | None:
    """A client has either a disk, with or without a filesystem, or files."""
    transport, is_files = chosen["transport"], chosen["filesystem"].name == FILES
    if transport.value.traits.gives_files == is_files:
        return None
    if is_files:
        return f"needs a transport that gives files; {transport.name} gives a disk"
    return f"needs a disk: {transport.name} gives files, so choose {FILES}"


AXIS = Axis(
    field="filesystem",
    noun="Filesystem",
    title="filesystem",
    place=70,
    inapplicable=_why_meaningless,
    choices=tuple(sorted(CHOICES, key=lambda choice: choice.place)),
)

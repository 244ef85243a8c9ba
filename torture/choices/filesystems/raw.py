"""No filesystem: the load writes to the bare disk, so every loss happened below the client."""

from __future__ import annotations

from torture.choices.filesystems.protocol import Filesystem
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult


def _refuse(output: ToolOutput) -> FsckResult:
    raise HarnessError(f"a raw disk has no check, yet there is one: {output.argv}")


NOTHING = Filesystem(make=(), mount=(), check=(), repairs=(), read_check=_refuse, has_files=False)
"""No filesystem of the client's own: no stage asks for its commands."""

CHOICE: Choice[Filesystem] = Choice(
    name="raw",
    value=NOTHING,
    words="no filesystem",
    explained="no filesystem: which layer lost it?",
    joins=frozenset({Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
    place=3,
)

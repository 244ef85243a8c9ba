"""No filesystem of the client's own: it writes to the bare disk, or to files of the NAS.

On the bare disk every loss happened below the client.
"""

from __future__ import annotations

from torture.choices.filesystems.protocol import FILES, Filesystem
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import OUTAGE_SWEEPS, Sweep
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import FsckResult


def _refuse(output: ToolOutput) -> FsckResult:
    raise HarnessError(f"a raw disk has no check, yet there is one: {output.argv}")


_NOTHING = Filesystem(make=(), mount=(), check=(), repairs=(), read_check=_refuse, has_files=False)
"""No stage asks for its commands."""

CHOICES: tuple[Choice[Filesystem], ...] = (
    Choice(
        name="raw",
        value=_NOTHING,
        words="no filesystem",
        explained="no filesystem: which layer lost it?",
        joins=frozenset({Sweep.LOG_DEVICES_AND_FILESYSTEMS}),
        place=3,
    ),
    # its transport offers files in the NAS's dataset
    Choice(
        name=FILES,
        value=_NOTHING,
        words="the NAS's files",
        explained="the files of a transport that gives files",
        joins=OUTAGE_SWEEPS
        | {
            Sweep.DATASTORES,
            Sweep.TRANSPORTS,
            Sweep.TRANSPORTS_BEHIND_ALWAYS,
            Sweep.EVERY_TRANSPORT,
        },
        place=4,
    ),
)

"""No filesystem of the client's own: its transport offers files in the NAS's dataset."""

from __future__ import annotations

from torture.choices.filesystems.protocol import FILES, Filesystem
from torture.choices.filesystems.raw import NOTHING
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

CHOICE: Choice[Filesystem] = Choice(
    name=FILES,
    value=NOTHING,
    words="the NAS's files",
    explained="the files of a transport that gives files",
    joins=frozenset(
        {Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}
    ),
    place=4,
)

"""LIO's fileio on an image in a dataset with `write_back=true`: a flush becomes an fsync of the file."""

from __future__ import annotations

from torture.choices.transports.fileio import Fileio
from torture.choices.transports.protocol import Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

CHOICE: Choice[Transport] = Choice(
    name="fileio_wb",
    value=Fileio(has_write_cache=True),
    words="iSCSI (fileio, write-back)",
    explained="the same with `write_back=true`",
    joins=frozenset({Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}),
    place=21,
)

"""Files over NFSv4.2 (nfs(5), RFC 7862): knfsd on a dataset, mounted by the client itself."""

from __future__ import annotations

from torture.choices.transports import _knfsd
from torture.choices.transports.nfs3 import NfsFiles
from torture.choices.transports.protocol import Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.nfs4_compounds import Nfs4OnWire

CHOICE: Choice[Transport] = Choice(
    name="nfs4",
    value=NfsFiles(options="vers=4.2", wire=Nfs4OnWire(_knfsd.NFS_PORT), path="/"),
    words="NFSv4.2",
    explained="the same over v4.2",
    joins=frozenset({Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
    place=51,
)

"""How the zvol leaves the NAS: one file a transport."""

from __future__ import annotations

from typing import Protocol

from torture.lab.domains import IscsiSource
from torture.matrix.axes import Transport
from torture.transports.iscsi import IscsiExport


class Export(Protocol):
    """What a transport has to say."""

    def publish_script(self) -> str:
        """Shell, run in the NAS: offer the zvol's device to clients."""

    def wait_until_idle_script(self) -> str:
        """Shell, run in the NAS: return once no client is left that could still write."""

    def source(self, *, nas_host: str) -> IscsiSource:
        """What the client's QEMU opens as the disk."""


_EXPORTS: dict[Transport, Export] = {Transport.ISCSI: IscsiExport()}


def export_of(transport: Transport) -> Export:
    """The export of a choice on the transport axis."""
    return _EXPORTS[transport]

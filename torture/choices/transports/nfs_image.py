"""A hypervisor's NFS datastore: a raw image on a dataset, opened by the client's QEMU through libnfs.

QEMU's driver speaks NFSv3 and takes no port (its `block/nfs.c`). A flush is a COMMIT of the file.
The library ignores the write verifier, so a client that lives never repeats the writes that a
server forgot.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

from torture.choices.transports import _knfsd
from torture.choices.transports._volumes import OfImage
from torture.choices.transports.protocol import Attachment, Transport
from torture.choices.volumes import dataset
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep


@dataclass(frozen=True, kw_only=True, slots=True)
class NfsSource:
    """A file that QEMU opens as the user root."""

    host: str
    path: str
    kind: str = "network"

    def element(self) -> ET.Element:
        """Its `source` element."""
        source = ET.Element("source", protocol="nfs", name=self.path)
        ET.SubElement(source, "host", name=self.host)
        ET.SubElement(source, "identity", user="+0", group="+0")
        return source


class NfsImage(_knfsd.Exported, OfImage):
    """One image on one export."""

    traits = _knfsd.traits(gives_files=False)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, as the client's second disk."""
        return Attachment(source=NfsSource(host=nas_host, path=dataset.IMAGE), device="/dev/vdb")


CHOICE: Choice[Transport] = Choice(
    name="nfs_image",
    value=NfsImage(),
    words="NFS (image, libnfs)",
    explained="Linux's knfsd, a raw image on a dataset; the client's QEMU opens it through libnfs",
    joins=frozenset(
        {Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}
    ),
    place=40,
)

"""Files over NFSv3 and NFSv4.2: knfsd on a dataset, mounted by the client itself (nfs(5)).

`hard`: the client waits for its NAS for ever. It keeps its writes until a COMMIT, and repeats them
when the server's write verifier has changed (Linux fs/nfs/write.c, `nfs_commit_release_pages`; RFC
1813, 3.3.21). A creation, rename or removal is stable before its answer (fs/nfsd/vfs.c,
`commit_metadata`).

`wsize`: data that fit one WRITE are sent stable, without a COMMIT (`FLUSH_COND_STABLE`). With the
usual megabyte the verifier would never be used.
"""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.transports import _knfsd
from torture.choices.transports._volumes import OfDataset
from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.choices.volumes import dataset
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.files_on_wire import FileProtocol, FileWire
from torture.facts.wire.nfs3_calls import Nfs3OnWire
from torture.facts.wire.nfs4_compounds import Nfs4OnWire

_TRAITS = _knfsd.traits(gives_files=True)
_COMMON_OPTIONS = "hard,proto=tcp,timeo=50,retrans=2,wsize=8192"


@dataclass(frozen=True, kw_only=True, slots=True)
class NfsFiles(_knfsd.Exported, OfDataset):
    """One export, mounted where filesystems are; `options` are mount's, `path` the export there."""

    options: str
    wire: FileProtocol
    path: str = dataset.DIRECTORY
    traits: Traits = _TRAITS

    def attachment(self, *, nas_host: str) -> Attachment:
        """A mounted directory."""
        mount = f"mount -t nfs -o {_COMMON_OPTIONS},{self.options}"
        return Attachment(
            attach_script=f"set -eu; modprobe nfs; {mount} {nas_host}:{self.path} {MOUNT_POINT}",
            wire=FileWire(protocol=self.wire),
        )


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="nfs3",
        value=NfsFiles(
            options=f"vers=3,nolock,mountport={_knfsd.MOUNTD_PORT}",
            wire=Nfs3OnWire(_knfsd.NFS_PORT),
        ),
        words="NFSv3",
        explained="Linux's knfsd, files directly; mounted by the client itself",
        joins=frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
        place=50,
    ),
    # RFC 7862
    Choice(
        name="nfs4",
        value=NfsFiles(options="vers=4.2", wire=Nfs4OnWire(_knfsd.NFS_PORT), path="/"),
        words="NFSv4.2",
        explained="the same over v4.2",
        joins=frozenset({Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
        place=51,
    ),
)

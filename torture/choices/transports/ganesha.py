"""Files over NFSv4.2: NFS-Ganesha, a server in user space, on a dataset; mounted by the client itself.

A stable write and a COMMIT are an fsync of the file, and the write verifier is of the server's start. A
creation, rename or removal is answered without any sync (nfs-ganesha src/FSAL/FSAL_VFS/handle.c, 4.3). A
client's fsync of a directory asks for nothing, as Linux's server has synced it before (nfs.py). So theory
promises less than there.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.nfs import FILE_TRAITS, NFS_PORT, NfsFiles
from torture.choices.transports.protocol import Transport
from torture.choices.volumes import DIRECTORY, VolumeOptions
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.nfs4_compounds import Nfs4OnWire

_GRACE_S = 10


class Ganesha(NfsFiles):
    """One export, at the root of the server's names."""

    def publish_script(self, options: VolumeOptions) -> str:
        """The configuration (ganesha-config(8)), and the server; no client has locks to reclaim."""
        return f"""set -eu
mountpoint -q {DIRECTORY}
mkdir -p /run/ganesha /var/lib/nfs/ganesha /var/log/ganesha
cat > /etc/ganesha/ganesha.conf << 'END'
NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {NFS_PORT}; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSV4 {{ Graceless = true; Lease_Lifetime = {_GRACE_S}; Grace_Period = {_GRACE_S}; }}
EXPORT {{
    Export_Id = 1; Path = {DIRECTORY}; Pseudo = /; Protocols = 4; Access_Type = RW;
    Squash = No_Root_Squash; SecType = sys; Filesystem_Id = 1.1; FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = WARN; }}
END
ganesha.nfsd -f /etc/ganesha/ganesha.conf -L /var/log/ganesha/ganesha.log -p /run/ganesha/ganesha.pid
"""


CHOICE: Choice[Transport] = Choice(
    name="ganesha",
    value=Ganesha(
        options="vers=4.2",
        wire=Nfs4OnWire(NFS_PORT),
        path="/",
        traits=replace(
            FILE_TRAITS,
            ports=(NFS_PORT,),
            is_nfs=False,
            names_are_stable=False,
            is_metadata_volatile=True,
            keeps_files_open=True,
            nas_image="nas_ganesha",
        ),
    ),
    words="NFSv4.2 (Ganesha)",
    explained="NFS-Ganesha, files directly; mounted by the client itself",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=52,
)

"""Files over NFSv4.2: NFS-Ganesha, a server in user space, on a dataset; mounted by the client itself.

A stable WRITE and a COMMIT are an fsync of the file, and the write verifier is of the server's start.
A creation, rename or removal is answered without any sync (nfs-ganesha V6 src/FSAL/FSAL_VFS/handle.c).
A client's fsync of a directory asks for nothing, as Linux's server has synced it before (nfs.py). So
theory promises less than there.

It asks for an ACL with each ACCESS (src/FSAL/access_check.c, `fsal_test_access`), even where the export
has none. On a dataset with ZFS's own `acltype=off` it answers NFS4ERR_NOTSUPP, and no file can be made.
ganesha-config(8), ganesha-export-config(8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torture.choices.transports.nfs import FILE_TRAITS, NFS_PORT, NfsFiles
from torture.choices.transports.protocol import Transport
from torture.choices.volumes import DIRECTORY, VolumeOptions
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.nfs4_compounds import Nfs4OnWire

_GRACE_S = 10
_WAIT_20_S = "for i in $(seq 400); do {done} && break; sleep 0.05; done; {done}"
_SERVE = f"""\
ganesha.nfsd -f /etc/ganesha/ganesha.conf -L /var/log/ganesha/ganesha.log -p /run/ganesha/pid
{_WAIT_20_S.format(done=f"ss --no-header -tln sport = :{NFS_PORT} | grep -q .")}
"""
_END = f"pkill -x ganesha.nfsd; {_WAIT_20_S.format(done='! pgrep -x ganesha.nfsd > /dev/null')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ganesha(NfsFiles):
    """One export, at the root of the server's names."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the dataset, with ACLs."""
        with_acls = replace(options, properties={**options.properties, "acltype": "posix"})
        return NfsFiles.make_volume_script(self, with_acls)

    def publish_script(self, options: VolumeOptions) -> str:
        """The configuration, and the server; no client has locks to reclaim."""
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
{_SERVE}"""

    def let_go_script(self) -> str:
        """End the server: it has the export's directory open for as long as it runs."""
        return _END


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
            is_metadata_volatile=True,
            names_are_stable=False,
            serves_until_let_go=True,
            target_scripts=(_END, _SERVE),
            release_script=_END,
            nas_image="nas_ganesha",
        ),
    ),
    words="NFSv4.2 (Ganesha)",
    explained="NFS-Ganesha, files directly; mounted by the client itself",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=52,
)

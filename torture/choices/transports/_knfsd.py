"""Linux's NFS server on a dataset (exports(5), rpc.nfsd(8), rpc.mountd(8)).

A saved NAS runs none of it and has not even loaded its module. A server's write verifier is drawn
when the server is made, with a key drawn as the module is loaded (Linux fs/nfsd/nfssvc.c,
`nfsd_reset_write_verifier_locked`). A NAS that came back with its former verifier would report to
its clients that nothing was lost.
"""

from __future__ import annotations

from torture.choices.transports.protocol import CompletedWrite, Traits
from torture.choices.volumes import VolumeKind, VolumeOptions
from torture.choices.volumes.dataset import DIRECTORY

NFS_PORT, MOUNTD_PORT, _RPCBIND_PORT = 2049, 20048, 111
_GRACE_S = 10
"""The shortest period that a server accepts. Its one client has no locks to reclaim."""


def traits(*, gives_files: bool) -> Traits:
    """The traits of every transport over knfsd."""
    return Traits(
        ports=(NFS_PORT, MOUNTD_PORT, _RPCBIND_PORT),
        volume=VolumeKind.DATASET,
        completed=CompletedWrite.IN_CLIENT if gives_files else CompletedWrite.IN_ZFS,
        gives_files=gives_files,
        is_nfs=True,
        names_are_stable=gives_files,
        client_has_network=gives_files,
        network_comes_last=not gives_files,
    )


class Exported:
    """The common part of all transports over knfsd."""

    def publish_script(self, options: VolumeOptions) -> str:
        """Shell: the export first, then the servers, then no grace period.

        `mountpoint`: nothing is exported while the dataset is not mounted. `insecure`: QEMU need not be
        root. `fsid=0`: file handles are the same before and after a cut, and mountd has nothing to look
        up. NFSv4 then mounts it as `/`, since the root of the NAS, an overlay, cannot be exported.
        """
        sync = "async" if options.is_exported_async else "sync"
        words = f"rw,{sync},no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint"
        return f"""set -eu
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /var/lib/nfs/v4recovery /run/sendsigs.omit.d
exportfs -o {words} '*:{DIRECTORY}'
rpcbind -w || rpcbind
rpc.mountd --port {MOUNTD_PORT}
rpc.nfsd -G {_GRACE_S} -L {_GRACE_S} 8
echo Y > /proc/fs/nfsd/v4_end_grace || true
"""

"""NFS: Linux's server on a dataset, with files or an image; and NFS-Ganesha, with files.

exports(5), rpc.nfsd(8), rpc.mountd(8). A saved NAS runs none of it and has not even loaded Linux's
module. A server's write verifier is drawn when the server is made, with a key drawn as the module
is loaded (Linux fs/nfsd/nfssvc.c, `nfsd_reset_write_verifier_locked`). A NAS that came back with
its former verifier would report to its clients that nothing was lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from torture.choices.transports.protocol import (
    Attachment,
    CompletedWrite,
    DiskSource,
    Mount,
    OfDataset,
    OfImage,
    Traits,
    Transport,
)
from torture.choices.volumes import DIRECTORY, IMAGE, POOL, VOLUME, VolumeKind, VolumeOptions
from torture.facts.axes.away import Patience
from torture.facts.axes.axis import Choice, choices_beside
from torture.facts.axes.early import Early
from torture.facts.axes.fate import Fate
from torture.facts.axes.hypervisor import Cache
from torture.facts.axes.sync import Sync
from torture.facts.wire.files_on_wire import FileProtocol, FileWire
from torture.facts.wire.nfs3_calls import Nfs3OnWire
from torture.facts.wire.nfs4_compounds import Nfs4OnWire
from torture.oracles.verdict.guarantee import Guarantee

NFS_PORT, _MOUNTD_PORT, _RPCBIND_PORT = 2049, 20048, 111
_GRACE_S = 10
"""The shortest period that a server accepts."""
_END = "rpc.nfsd 0"
_SERVE = "rpc.nfsd -G {grace_s} -L {grace_s} 8\n"
_END_GRACE = """\
for end in nfsd/v4_end_grace lockd/nlm_end_grace; do echo Y > /proc/fs/$end || true; done
"""
"""Where no client has locks to reclaim. lockd's own period holds up locks of NFSv4, too."""
_CLIENTS = "/var/lib/nfs/v4recovery"
"""The names of clients that may reclaim after a reboot (Linux fs/nfsd/nfs4recover.c)."""


def _traits(*, gives_files: bool) -> Traits:
    """The traits of every transport over knfsd."""
    return Traits(
        ports=(NFS_PORT, _MOUNTD_PORT, _RPCBIND_PORT),
        volume=VolumeKind.DATASET,
        completed=CompletedWrite.IN_CLIENT if gives_files else CompletedWrite.IN_ZFS,
        gives_files=gives_files,
        is_nfs=True,
        names_are_stable=gives_files,
        # fs/nfsd/nfscache.c keeps answers in memory; sessions need not keep them (RFC 8881, 2.10.6.5)
        repeats_requests=gives_files,
        client_has_network=gives_files,
        target_scripts=(_END, _SERVE.format(grace_s=_GRACE_S) + _END_GRACE)
        if gives_files
        else None,
        release_script=f"set -eu; {_END}; exportfs -ua; exportfs -f",
        network_comes_last=not gives_files,
    )


_PREPARE = f"""set -eu
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p {_CLIENTS} /run/sendsigs.omit.d
"""


def _export_script(options: VolumeOptions) -> str:
    sync = "async" if options.is_exported_async else "sync"
    words = f"rw,{sync},no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint"
    return f"exportfs -o {words} '*:{DIRECTORY}'\n"


class _Exported:
    """The common part of all transports over knfsd."""

    def publish_script(self, options: VolumeOptions) -> str:
        """Shell: the export first, then the servers; a grace period where a hypervisor may come back.

        `mountpoint`: nothing is exported while the dataset is not mounted. `insecure`: QEMU need not be
        root. `fsid=0`: file handles are the same before and after a cut, and mountd has nothing to look
        up. NFSv4 then mounts it as `/`, since the root of the NAS, an overlay, cannot be exported.
        """
        return f"{_PREPARE}{self._served(options, _export_script(options))}"

    def early_script(self, options: VolumeOptions) -> str:
        """The server alone, or an export of the directory without the dataset."""
        if options.order is Early.EXPORT_LATE:
            return f"{_PREPARE}{self._served(options, '')}"
        unmounted = f"zfs unmount {VOLUME}\nmount -t tmpfs none {DIRECTORY}\n"
        return f"{_PREPARE}{unmounted}{self._served(options, _export_script(options))}"

    def late_script(self, options: VolumeOptions) -> str:
        """The dataset, where it is missing, and its export; the server forgets the former one."""
        mount = f"umount -l {DIRECTORY}\nzfs mount {VOLUME}\n"
        is_mounted = options.order is not Early.MOUNT_LATE
        return f"set -eu\n{'' if is_mounted else mount}{_export_script(options)}exportfs -f\n"

    def _served(self, options: VolumeOptions, export: str) -> str:
        grace_s = options.grace_s or _GRACE_S
        # the kernel would look at the directory's clients as soon as it serves
        is_on_pool = f"mountpoint -q {_CLIENTS}\n" if options.remembers_clients else ""
        # an image is there: a client had it open
        unless = f'test -n "$(ls -A {DIRECTORY})" || ' if options.has_image else ""
        return f"""{is_on_pool}{export}rpcbind -w || rpcbind
rpc.mountd --port {_MOUNTD_PORT}
{_SERVE.format(grace_s=grace_s)}{unless}{_END_GRACE}"""

    def let_go_script(self) -> str:
        """Shell: the server's caches keep exports and files (Linux fs/nfsd/export.c, `expkey_flush`)."""
        return "exportfs -f"


# Files over NFSv3 and NFSv4.2: knfsd on a dataset, mounted by the client itself (nfs(5)).
#
# `hard`: the client waits for its NAS for ever. It keeps its writes until a COMMIT, and repeats
# them when the server's write verifier has changed (Linux fs/nfs/write.c,
# `nfs_commit_release_pages`; RFC 1813, 3.3.21). A creation, rename or removal is stable before
# its answer (fs/nfsd/vfs.c, `commit_metadata`).
#
# The suite's own options are for files. A hypervisor mounts with those that the distribution ships.
# `wsize`: data that fit one WRITE are sent stable, without a COMMIT (`FLUSH_COND_STABLE`). With
# the usual megabyte the verifier would never be used.

#
# A soft mount's call fails once `timeo` and `retrans` times that again have passed (Linux
# net/sunrpc/xprt.c, `xprt_calc_majortimeo`). vdsm's comment says 60 s of its own numbers.

_FILE_TRAITS = replace(
    _traits(gives_files=True),
    orders=frozenset({Early.EXPORT_LATE, Early.MOUNT_LATE}),
    waits_s=(
        (Patience.FOREVER, math.inf),
        (Patience.DEFAULTS, math.inf),
        (Patience.SOFT, 40),
        (Patience.SOFT_LONG, 100),
    ),
)
_CHOSEN_OPTIONS = "proto=tcp,wsize=8192"
_WAITS_FOREVER = ",hard,timeo=50,retrans=2"
_WAITS_SOFTLY: Mapping[Patience, Mapping[str, str]] = {
    Patience.SOFT: {"soft": "yes", "timeo": "100", "retrans": "3"},
    Patience.SOFT_LONG: {"soft": "yes", "timeo": "200", "retrans": "4"},
}
_BY_DEFAULT = frozenset({"hard", "timeo=600", "retrans=2"})
"""nfs(5)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NfsFiles(_Exported, OfDataset):
    """One export; `options` are the mount's, `path` the export there."""

    options: str
    wire: FileProtocol
    path: str = DIRECTORY
    patience: Patience = Patience.FOREVER
    traits: Traits = _FILE_TRAITS

    def waiting(self, patience: Patience) -> Transport:
        """The same with other options of the mount."""
        return replace(self, patience=patience)

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the dataset, and one for the server's records of its clients where those are kept."""
        made = OfDataset.make_volume_script(self, options)
        if not options.remembers_clients:
            return made
        return f"{made}; zfs create -o mountpoint={_CLIENTS} {POOL}/clients"

    def attachment(self, *, nas_host: str) -> Attachment:
        """A mounted directory."""
        is_forever = self.patience is Patience.FOREVER
        added = _WAITS_SOFTLY.get(self.patience, {})
        return Attachment(
            mount=Mount(
                kind="nfs",
                source=f"{nas_host}:{self.path}",
                needed=self.options,
                chosen=_CHOSEN_OPTIONS + (_WAITS_FOREVER if is_forever else ""),
                added=added,
                waits=frozenset() if added else frozenset({"hard"}) if is_forever else _BY_DEFAULT,
            ),
            wire=FileWire(protocol=self.wire),
        )


# Files over NFSv4.2: NFS-Ganesha, a server in user space, on a dataset; mounted by the client itself.
#
# A stable WRITE and a COMMIT are an fsync of the file, and the write verifier is of the server's
# start. A creation, rename or removal is answered without any sync (nfs-ganesha V6
# src/FSAL/FSAL_VFS/handle.c). A client's fsync of a directory asks for nothing, as Linux's server
# has synced it before. So theory promises less than there.
#
# It asks for an ACL with each ACCESS (src/FSAL/access_check.c, `fsal_test_access`), even where the
# export has none. On a dataset with ZFS's own `acltype=off` it answers NFS4ERR_NOTSUPP, and no file
# can be made. ganesha-config(8), ganesha-export-config(8).

_WAIT_20_S = "for i in $(seq 400); do {done} && break; sleep 0.05; done; {done}"
_SERVE_GANESHA = f"""\
ganesha.nfsd -f /etc/ganesha/ganesha.conf -L /var/log/ganesha/ganesha.log -p /run/ganesha/pid
{_WAIT_20_S.format(done=f"ss --no-header -tln sport = :{NFS_PORT} | grep -q .")}
"""
_END_GANESHA = (
    f"pkill -x ganesha.nfsd; {_WAIT_20_S.format(done='! pgrep -x ganesha.nfsd > /dev/null')}"
)


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
{_SERVE_GANESHA}"""

    def let_go_script(self) -> str:
        """End the server: it has the export's directory open for as long as it runs."""
        return _END_GANESHA


# A hypervisor's NFS datastore: a raw image on a dataset, opened by the client's QEMU through
# libnfs.
#
# QEMU's driver speaks NFSv3 and takes no port (its `block/nfs.c`). A flush is a COMMIT of the
# file. The library ignores the write verifier, so a client that lives never repeats the writes
# that a server forgot.
class NfsImage(_Exported, OfImage):
    """One image on one export."""

    traits = _traits(gives_files=False)

    def cached(self, mode: str) -> Transport | None:
        """Of other modes only `directsync` was tried."""
        match mode:
            case Cache.NONE:
                return self
            case Cache.DIRECTSYNC:
                return NfsImageDsync()
            case _:
                return None

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, as the client's second disk."""
        source = DiskSource(
            attributes={"protocol": "nfs", "name": IMAGE},
            within={"host": {"name": nas_host}, "identity": {"user": "+0", "group": "+0"}},
        )
        return Attachment(source=source, device="/dev/vdb")


class NfsImageStable(NfsImage):
    """Every write is stable: how ESXi writes, and `sync` mounts do.

    The client's disk reports a cache, and its flushes find it empty.
    """

    traits = replace(NfsImage.traits, completed=CompletedWrite.IN_LOG)

    def cached(self, mode: str) -> Transport | None:
        """No other mode was tried."""
        return self if mode == Cache.NONE else None

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, opened with O_SYNC."""
        unstable = super().attachment(nas_host=nas_host)
        return replace(unstable, preload="libnfs_stable")


class NfsImageDsync(NfsImage):
    """QEMU's `cache=directsync`, which looks like stable writes and is not.

    QEMU turns a written-through write into an unstable one and a COMMIT (`block/io.c`,
    `bdrv_driver_pwritev`). The client repeats a COMMIT in flight at the cut to a server that has
    nothing left to commit. It succeeds: its write is gone, although the client received its
    acknowledgement.
    """

    traits = replace(NfsImage.traits, completed=CompletedWrite.IN_LOG)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The image, with a flush after each write."""
        unstable = super().attachment(nas_host=nas_host)
        return replace(unstable, is_written_through=True, has_write_cache=False)

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """Completed writes are in the log, until a client that lives sends a COMMIT to another server."""
        if sync is Sync.STANDARD and fate is Fate.NAS_ONLY:
            return Guarantee.LOSES
        return super().guarantee(sync=sync, fate=fate)


CHOICES: tuple[Choice[Transport], ...] = choices_beside(
    __file__,
    {
        "nfs3": NfsFiles(
            options=f"vers=3,nolock,mountport={_MOUNTD_PORT}", wire=Nfs3OnWire(NFS_PORT)
        ),
        "nfs4": NfsFiles(
            options="vers=4.2",
            wire=Nfs4OnWire(NFS_PORT),
            path="/",
            traits=replace(_FILE_TRAITS, keeps_clients=True),
        ),
        "nfs_image": NfsImage(),
        "nfs_image_stable": NfsImageStable(),
        "ganesha": Ganesha(
            options="vers=4.2",
            wire=Nfs4OnWire(NFS_PORT),
            path="/",
            traits=replace(
                _FILE_TRAITS,
                ports=(NFS_PORT,),
                is_nfs=False,
                orders=frozenset(),
                is_metadata_volatile=True,
                names_are_stable=False,
                serves_until_let_go=True,
                target_scripts=(_END_GANESHA, _SERVE_GANESHA),
                release_script=_END_GANESHA,
                nas_image="nas_ganesha",
            ),
        ),
    },
)

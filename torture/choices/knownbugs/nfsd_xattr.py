"""Linux's NFS server answers SETXATTR and REMOVEXATTR before they are stable, and nobody asks again.

What changes names or attributes is committed before it is answered (`commit_metadata` in fs/nfsd/vfs.c:
`nfsd_setattr`, `nfsd_create_setattr`, `nfsd_link`, `nfsd_rename`, `nfsd_unlink`), but not by
`nfsd_setxattr` and `nfsd_removexattr` there. And the client has nothing to commit where no data was
written (`nfs_file_fsync` in fs/nfs/file.c), so that the user's fsync sends nothing: what it promised
(fsync(2)) is in a transaction group of the NAS's memory. With sync=always ZFS commits an attribute before
it returns. Found by this suite, with Linux 6.12 on both sides.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side

BUG = KnownBug(
    name="nfsd-xattr",
    words="an extended attribute over NFSv4.2 is lost although it was fsynced",
    source="Linux fs/nfsd/vfs.c, nfsd_setxattr and nfsd_removexattr (RFC 8276), against fsync(2)",
    affected=Side(cell="nfs4-standard-noslog-files-posix-bothdie"),
    cleared=Side(cell="nfs4-always-noslog-files-posix-bothdie"),
    seen_by=Sight.AUDIT,
    cuts=5,
)

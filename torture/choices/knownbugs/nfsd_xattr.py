"""Linux's NFS server answers SETXATTR and REMOVEXATTR before they are stable; no client asks again.

`commit_metadata` in fs/nfsd/vfs.c commits other changes of names or attributes before the answer
(`nfsd_setattr`, `nfsd_create_setattr`, `nfsd_link`, `nfsd_rename`, `nfsd_unlink`). `nfsd_setxattr`
and `nfsd_removexattr` there do not call it. The client has nothing to commit where no data were
written (`nfs_file_fsync` in fs/nfs/file.c), so the user's fsync sends nothing. The attribute that
fsync(2) promised is in a transaction group in the NAS's memory. With sync=always ZFS commits an
attribute before it returns. Found by this suite, with Linux 6.12 on both sides.
"""

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

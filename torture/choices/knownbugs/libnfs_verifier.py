"""libnfs does not compare write verifiers: writes that an NFS server forgot in a reboot stay lost.

A client has to keep its unstable writes until a COMMIT returns the verifier of the WRITEs. After
another verifier, it has to write them again (RFC 1813, 3.3.7 and 3.3.21). Linux's own client does
(`nfs_commit_release_pages` in `fs/nfs/write.c`). libnfs reads no verifier (`lib/nfs_v3.c`, 7.0.0).
So QEMU's image over NFS loses the writes that the server had completed and not committed. The cut
spares the client, which commits after the server's return.
"""

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side

BUG = KnownBug(
    name="libnfs-verifier",
    words="libnfs ignores that the server's write verifier changed",
    source="libnfs lib/nfs_v3.c and lib/nfs_v4.c against RFC 1813 3.3.21; Linux fs/nfs/write.c",
    affected=Side(cell="nfs_image-standard-noslog-ext4-nasonly"),
    cleared=Side(cell="nfs4-standard-noslog-files-nasonly"),
    seen_by=Sight.DATA,
    cuts=5,
)

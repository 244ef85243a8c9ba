"""The guarantees of transports on disks that honour flushes, by the place of a completed write.

OpenZFS `module/os/linux/zfs/zvol_os.c`, `zfs_vnops.c`: a write is synchronous only with FUA,
O_SYNC, a flush after it or sync=always. `module/zfs/zil.c`: with sync=disabled `zil_commit` returns
at once.

With both machines dead only the intent log counts: every acknowledged write was flushed. A client
that dies some seconds later received no acknowledgement meanwhile, as there was no NAS to send one.

A client that lives repeats only the requests in flight. Completed and unflushed writes are lost. It
flushes after the NAS's return, and never learns of the loss.
"""

from __future__ import annotations

from typing import Protocol

from torture.choices.transports.protocol import CompletedWrite, Transport
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee

_FORGOTTEN = {
    CompletedWrite.IN_ZFS: {Sync.STANDARD, Sync.DISABLED},
    CompletedWrite.IN_PAGE_CACHE: set(Sync),
    CompletedWrite.IN_LOG: {Sync.DISABLED},
    CompletedWrite.IN_CLIENT: {Sync.DISABLED},
}
"""The `sync` with which a NAS, after its reboot, lacks writes that its client relies on."""


class ByTheory(Transport, Protocol):
    """A transport whose guarantee follows from its traits."""

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """The consequence of the place of a completed write."""
        if fate is Fate.NAS_ONLY:
            is_forgotten = sync in _FORGOTTEN[self.traits.completed]
            return Guarantee.LOSES if is_forgotten else Guarantee.SAFE
        return Guarantee.ROLLS_BACK if sync is Sync.DISABLED else Guarantee.SAFE

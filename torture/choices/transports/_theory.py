"""What transports hold on disks that honour flushes, by where a completed write is.

OpenZFS `module/os/linux/zfs/zvol_os.c`, `zfs_vnops.c`: a write is synchronous only with FUA, O_SYNC, a
flush after it or sync=always. `module/zfs/zil.c`: with sync=disabled `zil_commit` returns at once.

With both machines dead only the log counts: what was acknowledged was flushed. A client that dies some
seconds later was told nothing more meanwhile, as there was nobody to tell it. One that lives sends again
only what was under way. What was completed and not flushed is forgotten; it flushes after the NAS's
return, and never learns of it.
"""

from __future__ import annotations

from torture.choices.transports.protocol import CompletedWrite, Traits
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee

_FORGOTTEN = {
    CompletedWrite.IN_ZFS: {Sync.STANDARD, Sync.DISABLED},
    CompletedWrite.IN_PAGE_CACHE: set(Sync),
    CompletedWrite.IN_LOG: {Sync.DISABLED},
    CompletedWrite.IN_CLIENT: {Sync.DISABLED},
}
"""With which `sync` a NAS that comes back has forgotten what its client builds on."""


def guarantee(traits: Traits, *, sync: Sync, fate: Fate) -> Guarantee:
    """What a transport with these traits holds."""
    if fate is Fate.NAS_ONLY:
        is_forgotten = sync in _FORGOTTEN[traits.completed]
        return Guarantee.LOSES if is_forgotten else Guarantee.SAFE
    return Guarantee.ROLLS_BACK if sync is Sync.DISABLED else Guarantee.SAFE

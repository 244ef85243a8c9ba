"""Which chains of the intent log a recording has: each boot of a NAS begins chains of its own.

A chain's blocks are told from what else lies on the disks by two random numbers (OpenZFS
`module/zfs/zil.c`, `zil_init_log_chain`). They come from a generator that is seeded when ZFS is loaded
(`module/os/linux/spl/spl-generic.c`), which for a NAS that is resumed was before it was saved. The first
NAS of a trial loads it anew as it is prepared; that the next one's chains are others is looked at.
"""

from __future__ import annotations

import struct

from torture.recording.events import Kind, Recording
from torture.recording.intent_log import log_block_starts

Chain = tuple[int, int]
_GUIDS = struct.Struct("<QQ")
_GUIDS_AT = 104
"""In a block, in the checksum of its pointer to the next one: `zil_chain_t`, `blkptr_t`, `blk_cksum`."""


def chains_in(recording: Recording) -> frozenset[Chain]:
    """The numbers of every chain of which a block was written."""
    found = set()
    for event in recording.events:
        if event.kind is Kind.WRITE_SUBMIT:
            payload = recording.payload(event)
            for start in log_block_starts(payload):
                found.add(_GUIDS.unpack_from(payload, start + _GUIDS_AT))
    return frozenset(found)

"""Which chains of the intent log a recording has: each boot of a NAS begins chains of its own.

A chain's blocks are told from what else lies on the disks by two random numbers (OpenZFS
`module/zfs/zil.c`, `zil_init_log_chain`). They come from a generator that is seeded when ZFS is loaded
(`module/os/linux/spl/spl-generic.c`), which for a NAS that is resumed was before it was saved. The first
NAS of a trial loads it anew as it is prepared; that the next one's chains are others is looked at.
"""

from __future__ import annotations

from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.intent_log import log_blocks_in

Chain = tuple[int, int]


def chains_in(recording: Recording) -> frozenset[Chain]:
    """The numbers of every chain of which a block was written."""
    found = set()
    for event in recording.events:
        if event.kind is Kind.WRITE_SUBMIT:
            for block in log_blocks_in(recording.payload(event)):
                if block.place is not None:
                    found.add(block.place.chain[:2])
    return frozenset(found)

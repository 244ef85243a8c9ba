"""The intent log's chains in a recording: each boot of a NAS begins its own chains.

Two random numbers distinguish a chain's blocks from other content (OpenZFS `module/zfs/zil.c`,
`zil_init_log_chain`). Their generator is seeded when ZFS is loaded (`module/os/linux/spl/spl-generic.c`).
A resumed NAS loaded ZFS before it was saved. So the first NAS of a trial reloads ZFS when it is prepared,
and the trial checks that the next NAS has other chains.
"""

from __future__ import annotations

from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.intent_log import log_blocks_in

Chain = tuple[int, int]


def chains_in(recording: Recording) -> frozenset[Chain]:
    """The random numbers of every chain of which a block was written."""
    found = set()
    for event in recording.events:
        if event.kind is Kind.WRITE_SUBMIT:
            for block in log_blocks_in(recording.payload(event)):
                if block.place is not None:
                    found.add(block.place.chain[:2])
    return frozenset(found)

"""What ZFS promises, and what it is when that does not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Invariant(StrEnum):
    """What must hold."""

    TXG_IS_DURABLE = "txg-is-durable"
    """When an uberblock is submitted, every write of its transaction group, and of all before it, is
    covered by a flush of its disk (OpenZFS `module/zfs/vdev_label.c`, `vdev_config_sync`: "flush the
    write cache of every disk that's been written to in this transaction group").
    """
    UBERBLOCKS_ASCEND = "uberblocks-ascend"
    """A disk's uberblocks are written in the order of their transaction groups."""
    UBERBLOCK_IS_DURABLE = "uberblock-is-durable"
    """When a transaction group's first write is submitted, every earlier uberblock is covered (OpenZFS
    `module/zfs/vdev_label.c`, `vdev_uberblock_sync_list`: "flush the uberblocks to disk"): what the
    group before freed may be given out from then on.
    """
    LABELS_TAKE_TURNS = "labels-take-turns"
    """Labels are covered before the uberblock behind them is written, and uberblocks before the labels
    behind them (`torture.oracles.audit.labels`)."""
    ACKNOWLEDGED_IS_DURABLE = "acknowledged-is-durable"
    """Between an operation's beginning and its acknowledgement a block of the ZIL was written and
    covered, or a transaction group committed; and all blocks of the ZIL that hold what it wrote are
    covered (`module/zfs/zil.c`, `zil_commit`: on stable storage when it returns).
    """
    RETURNED_IS_DURABLE = "returned-is-durable"
    """The same of all blocks of the ZIL that hold what it wrote, as its call returns, some ms before
    the acknowledgement is heard: by the client's clock (`torture.oracles.audit.due.returns`). Or a
    transaction group that began to commit since has them by then.
    """
    LOG_CHAIN_IS_WHOLE = "log-chain-is-whole"
    """When an operation is acknowledged, every block of the ZIL before the ones that hold it in their
    chain is covered, or its records are in a committed transaction group: replay ends at the first block
    that is missing (`module/zfs/zil.c`, `zil_parse`).
    """
    LOGGED_IS_WHOLE = "logged-is-whole"
    """When an operation is acknowledged of which the ZIL has a part, it has all of it, unharmed; or an
    uberblock was written since it began (`torture.oracles.audit.logged_contents`)."""
    EXTENT_IS_KEPT = "extent-is-kept"
    """What a transaction group wrote is not overwritten or trimmed by the next two, and a root block not
    by the two after the one that freed it (`torture.oracles.audit.extents`)."""
    TRIMMED_IS_FREE = "trimmed-is-free"
    """No trim and no zeroes take a label, an uberblock, or a block of the ZIL with records that no
    uberblock has committed (`torture.oracles.audit.trims`)."""
    COMPLETED_IS_DURABLE = "completed-is-durable"
    """What the client's disk completed is durable (`torture.oracles.audit.due.completions`)."""
    TXG_IS_IN_TIME = "txg-is-in-time"
    """Where a client is acknowledged something, a transaction group is written soon
    (`torture.oracles.audit.commits.LATE_MS`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """An invariant that was broken: at which event, and which submissions were not covered.

    Of a request of the client, where it wrote; else None.
    """

    invariant: Invariant
    event: int
    uncovered: tuple[int, ...] = ()
    offset_bytes: int | None = None
    until: int | None = field(default=None, compare=False)
    """Of a request of the client the last event at which it still did not hold; else None."""

    def in_words(self) -> str:
        """E.g. `acknowledged-is-durable at event 1401: 4 writes not covered, first 1391`."""
        text = f"{self.invariant} at event {self.event}"
        if self.offset_bytes is not None:
            return f"{text}: what was written at byte {self.offset_bytes} of the client's disk"
        if not self.uncovered:
            return text
        return f"{text}: {len(self.uncovered)} writes not covered, first {self.uncovered[0]}"

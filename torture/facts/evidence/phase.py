"""The place of a cut in ZFS's write path, as `cut.json` has it under `phase`."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The work of the disks; of several works, the one nearest to the end of a transaction group.

    A trim, for which nothing waits, comes before all others.
    """

    UBERBLOCK_WRITTEN = "uberblock-written"
    """An uberblock is under way or written, and no flush covers it yet."""
    LABEL_WRITTEN = "label-written"
    """The same for a label."""
    TRIMMING = "trimming"
    """A trim is under way or done, and no flush covers it yet."""
    BEFORE_UBERBLOCK = "before-uberblock"
    """A flush covers a whole transaction group, or is under way; its uberblock is not written."""
    METADATA_WRITTEN = "metadata-written"
    """Metadata of a transaction group, which follow its data, are under way or not covered."""
    TXG_WRITTEN = "txg-written"
    """Only data of a transaction group are under way, or written and not covered. Where a write's
    length does not distinguish data from metadata, the phase covers both."""
    ACKNOWLEDGED = "acknowledged"
    """The client had an acknowledgement in the last 2.5 ms, and no transaction group is written."""
    ZIL_REUSED = "zil-reused"
    """As `zil-written`, where the last write reused an older block of the intent log."""
    ZIL_SEVERAL = "zil-several"
    """As `zil-written`, and a disk has several: a mirror has each block twice."""
    ZIL_WRITTEN = "zil-written"
    """A block of the intent log, or data that it points to, is under way or written, and not covered."""
    ZIL_FLUSHED = "zil-flushed"
    """A block of the intent log is covered, and the client has sent nothing since."""
    IDLE = "idle"
    """Nothing that a cut could take from the disks."""

"""Where in ZFS's write path a cut fell, as `cut.json` has it under `phase`."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What the disks were at; of several the one nearest to the end of a transaction group.

    A trim, which nothing waits for, is told before what it is beside.
    """

    UBERBLOCK_WRITTEN = "uberblock-written"
    """An uberblock is under way or written, and no flush covers it yet."""
    LABEL_WRITTEN = "label-written"
    """The same of a label."""
    TRIMMING = "trimming"
    """A trim is under way or done, and no flush covers it yet."""
    BEFORE_UBERBLOCK = "before-uberblock"
    """All of a transaction group is covered, or its flush is under way; its uberblock is not written."""
    METADATA_WRITTEN = "metadata-written"
    """Metadata of a transaction group, which come behind its data, are under way or not covered."""
    TXG_WRITTEN = "txg-written"
    """Of a transaction group only data are under way or written, and not covered; where a write's length
    does not tell data from metadata, any of it."""
    ACKNOWLEDGED = "acknowledged"
    """The client was acknowledged something in the last 2.5 ms, and no transaction group is written."""
    ZIL_REUSED = "zil-reused"
    """As `zil-written`, where an older block of the intent log was the last to be written."""
    ZIL_SEVERAL = "zil-several"
    """As `zil-written`, and a disk has several: a mirror has each block twice."""
    ZIL_WRITTEN = "zil-written"
    """A block of the intent log, or data that it points to, is under way or written, and not covered."""
    ZIL_FLUSHED = "zil-flushed"
    """A block of the intent log is covered, and the client has not been heard of since."""
    IDLE = "idle"
    """Nothing that a cut could take from the disks."""

    @property
    def is_of_the_log(self) -> bool:
        """Whether only a NAS that writes an intent log comes to it."""
        return self.value.startswith("zil-")

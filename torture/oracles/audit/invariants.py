"""The invariants of ZFS, the finding for a broken one, and the result of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.evidence.cut_document import AuditDocument, Phase
from torture.oracles.audit.at_risk import AtRisk


class Invariant(StrEnum):
    """A rule that ZFS and the NAS must keep."""

    TXG_IS_DURABLE = "txg-is-durable"
    """When an uberblock is submitted, a flush covers every write of its transaction group and of
    earlier groups.

    OpenZFS `module/zfs/vdev_label.c`, `vdev_config_sync`: "flush the write cache of every disk that's
    been written to in this transaction group".
    """
    UBERBLOCKS_ASCEND = "uberblocks-ascend"
    """A disk's uberblocks are written in the order of their transaction groups."""
    UBERBLOCK_IS_DURABLE = "uberblock-is-durable"
    """When a transaction group's first write is submitted, every earlier uberblock is covered.

    From then on ZFS may reuse the blocks that the group before freed (OpenZFS
    `module/zfs/vdev_label.c`, `vdev_uberblock_sync_list`: "flush the uberblocks to disk").
    """
    LABELS_TAKE_TURNS = "labels-take-turns"
    """Labels are covered before the next uberblock is written, and uberblocks before the next labels
    (`torture.oracles.audit.vdevs.labels`).
    """
    ACKNOWLEDGED_IS_DURABLE = "acknowledged-is-durable"
    """An operation's acknowledgement needs a commit, and its first blocks of the ZIL must be covered.

    The commit is a covered ZIL block, or a transaction group, since the operation began
    (`module/zfs/zil.c`, `zil_commit`: on stable storage when it returns). Where the ZIL shows the data
    of other operations and no group came since, it has to show this operation's, too.
    """
    RETURNED_IS_DURABLE = "returned-is-durable"
    """All ZIL blocks of an operation are covered when its call returns, by the client's clock.

    The call returns some ms before the acknowledgement reaches the recording
    (`torture.oracles.audit.at_risk`). A committed transaction group that began after the operation
    counts as well.
    """
    LOG_CHAIN_IS_WHOLE = "log-chain-is-whole"
    """When an operation is acknowledged, every earlier ZIL block of its chain is covered.

    A block is not needed if its records are in a committed transaction group. Replay ends at the first
    missing block (`module/zfs/zil.c`, `zil_parse`).
    """
    LOGGED_IS_WHOLE = "logged-is-whole"
    """If the ZIL holds a part of an acknowledged operation, it holds all of it, undamaged.

    An uberblock that was written after the operation began lifts this duty
    (`torture.oracles.audit.log_contents.Contents`).
    """
    EXTENT_IS_KEPT = "extent-is-kept"
    """The next two transaction groups do not overwrite or trim a group's blocks.

    A root block is kept for two groups after the one that freed it (`torture.oracles.audit.extents`).
    """
    TRIMMED_IS_FREE = "trimmed-is-free"
    """Trims and zeroes spare labels, uberblocks, and ZIL blocks with uncommitted records
    (`torture.oracles.audit.vdevs.labels.Trims`).
    """
    COMPLETED_IS_DURABLE = "completed-is-durable"
    """Completed requests of the client's disk are durable (`torture.oracles.audit.durable`)."""
    TXG_IS_IN_TIME = "txg-is-in-time"
    """Soon after an acknowledgement a transaction group is written
    (`torture.oracles.audit.commits.LATE_MS`).
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A broken invariant: the event that broke it, and the submissions that were not covered.

    `offset_bytes` is the place of a client's request on its disk; None for other findings.
    """

    invariant: Invariant
    event: int
    uncovered: tuple[int, ...] = ()
    offset_bytes: int | None = None
    until: int | None = field(default=None, compare=False)
    """The last event at which a client's request was still not durable; None for other findings."""

    def in_words(self) -> str:
        """E.g. `acknowledged-is-durable at event 1401: 4 writes not covered, first 1391`."""
        text = f"{self.invariant} at event {self.event}"
        if self.offset_bytes is not None:
            return f"{text}: the write at byte {self.offset_bytes} of the client's disk"
        if not self.uncovered:
            return text
        return f"{text}: {len(self.uncovered)} writes not covered, first {self.uncovered[0]}"


_FINDINGS_REPORTED_MAX = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The counts of checked promises, and the findings."""

    acknowledged_at: tuple[int, ...] = ()
    """The numbers of the marks that acknowledged a durable operation."""
    completions: int | None = None
    """Writes of the client that had to be durable; None where no request was traced."""
    txgs: int = 0
    findings: tuple[Finding, ...] = ()
    waived: int = 0
    """How often a waived invariant was broken."""
    phase: Phase | None = None
    """The cut's phase; None where the content of writes does not distinguish them."""
    under_way: int | None
    """Durable operations begun and not acknowledged at the cut; None where no load keeps a ledger."""
    at_risk: AtRisk | None
    """The durable operations that the cut may take; None where no load keeps a ledger."""
    uncommitted_ms: int | None = None
    """`torture.oracles.audit.commits.Commits.uncommitted_ms` at the cut."""
    layout_changes: tuple[str, ...] = ()
    """The disks that joined the pool or left it, e.g. `slog0 left`."""

    @property
    def acknowledgements(self) -> int:
        """How many durable operations were acknowledged."""
        return len(self.acknowledged_at)

    def marks_only(self) -> Audit:
        """The audit without the results that depend on the role of a write.

        Only the ledger's marks count where the recording's writes cannot be classified.
        """
        return Audit(under_way=self.under_way, at_risk=self.at_risk and self.at_risk.marks_only())

    def as_document(self, *, took_ms: int) -> AuditDocument:
        """For `cut.json`."""
        return AuditDocument(
            acknowledgements=self.acknowledgements,
            completions=self.completions,
            txgs=self.txgs,
            broken=len(self.findings),
            findings=tuple(
                finding.in_words() for finding in self.findings[:_FINDINGS_REPORTED_MAX]
            ),
            waived=self.waived or None,
            under_way=self.under_way,
            acknowledged_lately=self.at_risk.lately if self.at_risk else None,
            uncommitted=self.at_risk.uncommitted if self.at_risk else None,
            logged_ms=self.at_risk.logged_ms if self.at_risk else None,
            uncommitted_ms=self.uncommitted_ms,
            layout_changes=self.layout_changes,
            took_ms=took_ms,
        )

"""`cut.json`: the moment of the cut, and the state of the disks. Documented in results/README.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from torture.facts.evidence.documents import Count, Document, Finite, field, replace
from torture.facts.evidence.ledger import Ledger, cut_after, parse_ledger


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


_ADDED = ("acknowledgements", "completions", "txgs", "broken", "waived", "took_ms")
_TEXTS = ("findings", "layout_changes")


class AuditDocument(Document, frozen=True, kw_only=True):
    """Counts, and the first few findings in words; a trial without an audit has None."""

    acknowledgements: Count | None = None
    """Durable operations that were acknowledged between the first mark and the cut."""
    completions: Count | None = None
    """Writes whose completion promised something, or a later flush of the client's disk did."""
    txgs: Count | None = None
    """Transaction groups whose uberblock was written."""
    broken: Count | None = None
    """How often an invariant did not hold."""
    findings: tuple[str, ...] = ()
    """E.g. `acknowledged-is-durable at event 1401: 4 writes not covered, first 1391`."""
    waived: Count | None = None
    """How often an invariant that the cell's own settings break did not hold; None without one."""
    under_way: Count | None = None
    """Durable operations that the client had begun, without an acknowledgement at the cut."""
    acknowledged_lately: Count | None = None
    """Durable operations acknowledged within the last second before it."""
    uncommitted: Count | None = None
    """Durable operations acknowledged before it, and begun after the first write of the last committed
    transaction group: no group has them."""
    logged_ms: Count | None = None
    """How long before the cut the newest of these became durable in the log, or was written there
    without a flush. None where that is unknown."""
    uncommitted_ms: Count | None = None
    """How long before the cut ZFS began to write the last transaction group that was committed."""
    layout_changes: tuple[str, ...] = ()
    """The disks that joined the pool or left it before the cut, e.g. `slog0 left`."""
    took_ms: Count | None = None
    """Time of a processor, without other work of the host; before 0.5 by the clock."""

    @property
    def is_broken(self) -> bool:
        """Whether an invariant did not hold."""
        return bool(self.broken)

    def and_then(self, later: AuditDocument) -> AuditDocument:
        """The sum of both audits; facts about the cut are those of this one."""

        def added(name: str) -> int | None:
            counts = [getattr(audit, name) for audit in (self, later)]
            known = [count for count in counts if count is not None]
            return sum(known) if known else None

        sums = {name: added(name) for name in _ADDED}
        texts = {name: (*getattr(self, name), *getattr(later, name)) for name in _TEXTS}
        return replace(self, **sums, **texts)


class Confirmation(Document, frozen=True, kw_only=True):
    """The cut that a trial recovered and checked in place of the drawn cut.

    It is empty where the audit of a trial found nothing. The verdict says whether data were lost.
    """

    finding: str = ""
    """The finding in the audit's words; empty where no finding was confirmed."""
    why_not: str = ""
    """Why the trial recovered the drawn cut although there was a finding."""
    event: Count | None = None
    """The number of the last event that happened."""
    t_ms: Finite | None = None
    """The time of that event, in milliseconds since the trial began."""
    marks: Count | None = None
    """Lines of the ledger before that event in the shelf's recording; later lines never happened."""
    acknowledged: Count | None = None
    """Durable operations that were acknowledged in these lines."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state, as `torture.facts.recording.crash_state` writes it."""

    @property
    def is_made(self) -> bool:
        """Whether an earlier cut was recovered instead of the drawn one."""
        return self.marks is not None

    def ledger_of(self, data: bytes) -> Ledger:
        """The part of a stored ledger up to the recovered cut: nothing later happened."""
        if self.marks is not None:
            data = cut_after(data, lines=self.marks, t_ms=self.t_ms or 0.0)
        return parse_ledger(data)


GONE = "gone"
"""The policy of a disk that the trial removed with the cut."""

_PLP = "plp"
"""The persistence of a disk that loses nothing."""


class DiskAtCut(Document, frozen=True, kw_only=True):
    """A disk, and the fate of its writes; an unknown count is None."""

    persistence: str = ""
    """A `torture.facts.recording.disks.Persistence`."""
    policy: str = ""
    """The policy drawn for its volatile writes, or `GONE`."""
    writes: Count | None = None
    """All writes."""
    in_flight: Count | None = None
    """Submitted and not completed."""
    unflushed: Count | None = None
    """Completed, and no flush covers them."""
    survived: Count | None = None
    """Of the writes in flight and unflushed, those that the disk kept as a whole."""
    torn: Count | None = None
    """Of the same writes, those of which the disk kept only a part."""


class LinkFailure(Document, frozen=True, kw_only=True):
    """The time in which the NAS could not be reached, in milliseconds since the trial began."""

    down_ms: Finite | None = None
    """Its beginning."""
    up_ms: Finite | None = None
    """Its end."""
    has_other_path: bool = False
    """Whether the client could reach the NAS all the same, by another address."""


class CutDocument(Document, frozen=True, kw_only=True):
    """The cut of a trial."""

    t_ms: Finite | None = None
    """When, in milliseconds since the trial began."""
    took_ms: Finite | None = None
    """The time until everything was dead."""
    publishing_ms: Finite | None = None
    """When the returned NAS began to offer its volume again."""
    published_ms: Finite | None = None
    """When the volume was there again."""
    link: LinkFailure | None = None
    """The failure of the NAS's link before the cut; None where it stayed."""
    plan: dict[str, Any] = field(default_factory=dict)
    """The plan, as `torture.trials.plan.cut_plan.CutPlan.as_json` gives it."""
    hit: bool | None = None
    """Whether the event at which the plan aimed came."""
    log_seq: Count | None = None
    """The number of the shelf's last event."""
    log_ms: Finite | None = None
    """The time of that event, in milliseconds since the shelf began."""
    marks: Count | None = None
    """Lines of the ledger before that event in the shelf's recording."""
    acknowledged: Count | None = None
    """Durable operations that were acknowledged in these lines; schema 1 calls it `promised`."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state that was drawn, as `torture.facts.recording.crash_state` writes it."""
    disks: dict[str, DiskAtCut] = field(default_factory=dict)
    """The disks by serial."""
    phase: str = ""
    """The cut's place in ZFS's write path, by the recording: one of
    `torture.facts.evidence.cut_document.Phase`."""
    audit: AuditDocument = AuditDocument()
    """The audit of the recording up to the cut."""
    confirmed: Confirmation = Confirmation()
    """The earlier cut that was recovered in place of this one, if the audit found something."""
    second: CutDocument | None = None
    """The cut after the client had lived on, if there was one. The returned NAS's recording gives
    `t_ms`, `took_ms`, `log_seq`, `log_ms`, `view`, `disks`, `phase` and `audit`."""
    later: AuditDocument | None = None
    """The audit of the last NAS's recording, from its return to the scrub."""
    not_in_effect: tuple[str, ...] = ()
    """Settings that were found otherwise, e.g. `at the end: export: async, not sync`."""

    @property
    def audited(self) -> AuditDocument:
        """The audits of all recordings together: up to each cut, and up to the last NAS's scrub."""
        found = self.audit.and_then(self.second.audit) if self.second else self.audit
        return found.and_then(self.later) if self.later else found

    @property
    def aim(self) -> str:
        """The plan's aim; empty where it is unknown."""
        aim = self.plan.get("aim")
        return aim if isinstance(aim, str) else ""

    @property
    def policies(self) -> str:
        """The policies of the disks that may lose data: each policy once, joined by `+`."""
        losing = [disk for disk in self.disks.values() if disk.persistence not in ("", _PLP)]
        return "+".join(sorted({disk.policy for disk in losing if disk.policy}))

    @property
    def _is_disk_at_risk(self) -> bool:
        return any(disk.unflushed or disk.in_flight for disk in self.disks.values())

    @property
    def is_stalled(self) -> bool:
        """Whether nothing was acknowledged in the last second, and no disk had anything to lose.

        A load that works always has something under way. So has a load that hangs.
        """
        return self.audit.acknowledged_lately == 0 and not self._is_disk_at_risk

    @property
    def is_at_risk(self) -> bool | None:
        """Whether something was unflushed, in flight or being acknowledged; None without any counts."""
        if self.audit.under_way is None:
            return None
        return self._is_disk_at_risk or (self.audit.under_way > 0 and not self.is_stalled)

    @property
    def is_empty(self) -> bool:
        """Whether the cut could take nothing: nothing at risk, acknowledged lately, or hit by aim.

        An aim at the disks of a load that stalled amid an operation hits nothing of that load.

        A cut without counts is not called empty. Nor is a cut that confirms a finding. Of two cuts,
        both must be empty.
        """
        if self.confirmed.is_made:
            return False
        if self.second is not None and not self.second.is_empty:
            return False
        was_aimed = bool(self.hit) and self.aim not in ("", "anywhere")
        is_idle = self.audit.under_way == 0
        return (
            self.is_at_risk is False
            and not self.audit.acknowledged_lately
            and not (was_aimed and is_idle)
        )

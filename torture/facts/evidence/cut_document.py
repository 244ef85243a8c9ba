"""`cut.json`: the moment of the cut, and what the disks were doing. Documented in results/README.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torture.facts.evidence.audit_document import AuditDocument
from torture.facts.evidence.confirmation import Confirmation
from torture.facts.evidence.documents import Count, Document, Finite

GONE = "gone"
"""Stands for the policy of a disk that the trial took away with the cut."""

_PLP = "plp"
"""The persistence of a disk that loses nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskAtCut(Document):
    """What a disk was, and what became of its writes; a count that nobody took is None."""

    persistence: str = ""
    policy: str = ""
    """What was drawn for its volatile writes, or `GONE`."""
    writes: Count | None = None
    """In all."""
    in_flight: Count | None = None
    """Submitted and not completed."""
    unflushed: Count | None = None
    """Completed, and no flush covers them."""
    survived: Count | None = None
    """Of the latter two kinds those that are there as a whole."""
    torn: Count | None = None
    """Of these kinds those of which only a part is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CutDocument(Document):
    """A cut as its trial tells it. What is read is believed if it has the right type, else left out."""

    t_ms: Finite | None = None
    """When, in milliseconds since the trial began."""
    took_ms: Finite | None = None
    """Until everything was dead."""
    publishing_ms: Finite | None = None
    published_ms: Finite | None = None
    """When the NAS that came back began to offer its volume again, and when it did."""
    plan: dict[str, Any] = field(default_factory=dict)
    """As `torture.trials.plan.cut_plan.CutPlan.as_json` gives it."""
    hit: bool | None = None
    """Whether what the plan aimed at came."""
    log_seq: Count | None = None
    """The number of the shelf's last event."""
    log_ms: Finite | None = None
    """When that was, in milliseconds since the shelf began."""
    marks: Count | None = None
    """Lines of the ledger that are before it in the shelf's log."""
    acknowledged: Count | None = None
    """Durable operations that were acknowledged in these; records of schema 1 call it `promised`."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state that was drawn, as `torture.facts.recording.crash_state` writes it."""
    disks: dict[str, DiskAtCut] = field(default_factory=dict)
    """By serial."""
    phase: str = ""
    """Where in ZFS's write path it fell, by its log: one of `torture.facts.evidence.phase.Phase`."""
    audit: AuditDocument = field(default_factory=AuditDocument)
    """Of the log up to it."""
    confirmed: Confirmation = field(default_factory=Confirmation)
    """The earlier cut that was recovered instead of this one, if the audit found something."""
    second: CutDocument | None = None
    """The cut after the client had lived on, where there was one: `t_ms`, `took_ms`, `log_seq`, `log_ms`,
    `view`, `disks`, `phase` and `audit`, as above, of the recording of the NAS that had come back."""
    others: dict[str, Any] = field(default_factory=dict)
    """What another version of the suite said beside these."""

    @property
    def audited(self) -> AuditDocument:
        """What the audits of all its logs came to: up to this cut, and up to the second one."""
        return self.audit if self.second is None else self.audit.and_then(self.second.audit)

    @property
    def aim(self) -> str:
        """What the plan aimed at; empty where it is not known."""
        aim = self.plan.get("aim")
        return aim if isinstance(aim, str) else ""

    @property
    def policies(self) -> str:
        """What the disks that may lose something kept: each policy once, joined by `+`."""
        losing = [disk for disk in self.disks.values() if disk.persistence not in ("", _PLP)]
        return "+".join(sorted({disk.policy for disk in losing if disk.policy}))

    @property
    def is_stalled(self) -> bool:
        """Whether nothing was acknowledged in the last second, and no disk had anything to lose.

        A load that works always has something under way, and so has one that hangs.
        """
        at_risk = any(disk.unflushed or disk.in_flight for disk in self.disks.values())
        return self.audit.acknowledged_lately == 0 and not at_risk

    @property
    def is_at_risk(self) -> bool | None:
        """Whether something was unflushed, in flight or being acknowledged; None if nobody looked."""
        if self.audit.under_way is None:
            return None
        at_risk = any(disk.unflushed or disk.in_flight for disk in self.disks.values())
        return at_risk or (self.audit.under_way > 0 and not self.is_stalled)

    @property
    def is_empty(self) -> bool:
        """Whether nothing could have been lost: nothing at risk, acknowledged lately, or hit by aim.

        An aim at the disks of a load that stalled amid an operation hits nothing of that load.

        What was not looked at is not called empty, nor is one that confirms a finding. Of two cuts both
        have to be.
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

    @classmethod
    def newest(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Schema 1 called `acknowledged` `promised`."""
        if "promised" in data:
            data.setdefault("acknowledged", data.pop("promised"))
        return data

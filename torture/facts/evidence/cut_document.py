"""`cut.json`: the moment of the cut, and what the disks were doing. Documented in results/README.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from torture.facts.evidence.audit_document import AuditDocument
from torture.facts.evidence.confirmation import Confirmation
from torture.facts.evidence.typed import flag_of, number_of, object_of, others_of, text_of, whole_of

GONE = "gone"
"""Stands for the policy of a disk that the trial took away with the cut."""

_PLP = "plp"
"""The persistence of a disk that loses nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskAtCut:
    """What a disk was, and what became of its writes; a count that nobody took is None."""

    persistence: str = ""
    policy: str = ""
    """What was drawn for its volatile writes, or `GONE`."""
    writes: int | None = None
    """In all."""
    in_flight: int | None = None
    """Submitted and not completed."""
    unflushed: int | None = None
    """Completed, and no flush covers them."""
    survived: int | None = None
    """Of the latter two kinds those that are there as a whole."""
    torn: int | None = None
    """Of these kinds those of which only a part is there."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """As much of it as has the right type."""
        return cls(
            persistence=text_of(data, "persistence"),
            policy=text_of(data, "policy"),
            writes=whole_of(data, "writes"),
            in_flight=whole_of(data, "in_flight"),
            unflushed=whole_of(data, "unflushed"),
            survived=whole_of(data, "survived"),
            torn=whole_of(data, "torn"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CutDocument:
    """A cut as its trial tells it. What is read is believed if it has the right type, else left out."""

    t_ms: float | None = None
    """When, in milliseconds since the trial began."""
    took_ms: float | None = None
    """Until everything was dead."""
    publishing_ms: float | None = None
    published_ms: float | None = None
    """When the NAS that came back began to offer its volume again, and when it did."""
    plan: dict[str, Any] = field(default_factory=dict)
    """As `torture.trials.plan.cut_plan.CutPlan.as_json` gives it."""
    hit: bool | None = None
    """Whether what the plan aimed at came."""
    log_seq: int | None = None
    """The number of the shelf's last event."""
    log_ms: float | None = None
    """When that was, in milliseconds since the shelf began."""
    marks: int | None = None
    """Lines of the ledger that are before it in the shelf's log."""
    acknowledged: int | None = None
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
    second: dict[str, Any] = field(default_factory=dict)
    """The cut after the client had lived on, where there was one: `t_ms`, `took_ms`, `log_seq`, `log_ms`,
    `view`, `disks`, `phase` and `audit`, as above, of the recording of the NAS that had come back."""
    others: dict[str, Any] = field(default_factory=dict)
    """What another version of the suite said beside these."""

    @property
    def audited(self) -> AuditDocument:
        """What the audits of all its logs came to: up to this cut, and up to the second one."""
        return self.audit.and_then(AuditDocument.from_json(object_of(self.second, "audit")))

    @property
    def aim(self) -> str:
        """What the plan aimed at; empty where it is not known."""
        return text_of(self.plan, "aim")

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
        if self.second and not CutDocument.from_json(self.second).is_empty:
            return False
        was_aimed = bool(self.hit) and self.aim not in ("", "anywhere")
        is_idle = self.audit.under_way == 0
        return (
            self.is_at_risk is False
            and not self.audit.acknowledged_lately
            and not (was_aimed and is_idle)
        )

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back. What is not known is left out."""
        plain = {
            name: value
            for name in self.__dataclass_fields__
            if (value := getattr(self, name)) is not None and value not in ({}, "")
        }
        if self.disks:
            plain["disks"] = {serial: _known(disk) for serial, disk in self.disks.items()}
        plain.pop("others", None)
        for name, part in (
            ("audit", self.audit.as_json()),
            ("confirmed", self.confirmed.as_json()),
        ):
            plain.pop(name)
            if part:
                plain[name] = part
        return plain | self.others

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The document of `as_json`'s data, or as much of it as can be believed."""
        return cls(
            t_ms=number_of(data, "t_ms"),
            took_ms=number_of(data, "took_ms"),
            publishing_ms=number_of(data, "publishing_ms"),
            published_ms=number_of(data, "published_ms"),
            plan=object_of(data, "plan"),
            hit=flag_of(data, "hit"),
            log_seq=whole_of(data, "log_seq"),
            log_ms=number_of(data, "log_ms"),
            marks=whole_of(data, "marks"),
            acknowledged=whole_of(data, "acknowledged" if "acknowledged" in data else "promised"),
            view=object_of(data, "view"),
            disks={
                serial: DiskAtCut.from_json(disk)
                for serial, disk in object_of(data, "disks").items()
                if isinstance(disk, dict)
            },
            phase=text_of(data, "phase"),
            audit=AuditDocument.from_json(object_of(data, "audit")),
            confirmed=Confirmation.from_json(object_of(data, "confirmed")),
            second=object_of(data, "second"),
            others=others_of(data, _KNOWN),
        )


_KNOWN = frozenset(CutDocument.__dataclass_fields__) - {"others"} | {"promised"}


def _known(disk: DiskAtCut) -> dict[str, Any]:
    return {name: value for name, value in asdict(disk).items() if value not in (None, "")}

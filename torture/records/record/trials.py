"""The record of a trial: one JSON object, one line of `trials.jsonl`. Documented in results/README.md.

Also what tells the records of several trials apart, and which of several of one trial counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Protocol, Self, TypeVar

from torture.facts.evidence.administration_document import AdministrationDocument
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import Count, Document, Name, Seed, limits
from torture.oracles.verdict.guarantee import COMMIT_SLACK_MS, ROLLBACK_MS_MAX, Guarantee
from torture.oracles.verdict.judgement import Judgement
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.older_schemas import upgraded
from torture.records.record.run_layout import RunLayout
from torture.records.record.worth import Absence, Speed

SCHEMA = 3
SCHEMAS_READ = (1, 2, 3)
"""See `torture.records.record.older_schemas`."""


class Origin(StrEnum):
    """Where a trial's verdict comes from; only a live trial is one of those that a run drew."""

    LIVE = "live"
    """A load and a cut, drawn from the run's seed."""
    REPLAY = "replay"
    """The recording of an earlier trial, recovered and checked again: no other cut."""
    PLANTED = "planted"
    """A fault was planted on purpose: it says what the instrument sees, and nothing of its cell."""
    RERUN = "rerun"
    """An earlier trial again from its seed: the same load and planned cut, its microseconds its own.
    It was chosen for how the first one ended, so that counting it would bend the rates."""


class Identity(NamedTuple):
    """What tells trials apart: records with the same identity are of one trial."""

    trial: str
    origin: Origin
    run: str
    """Of a replay or rerun the run it was made in, for a trial may have several; else empty."""
    zfs: str
    """The same seed draws the same trial for every version of ZFS, and each of them is one of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialRecord(Document):
    """How one trial ended."""

    trial: Name
    cell: Name
    axes: dict[str, str] = field(default_factory=dict)
    seed: Seed = 0
    guarantee: str = ""
    """What theory says of the cell: one of `torture.oracles.verdict.guarantee.Guarantee`."""
    judgement: Judgement
    origin: Annotated[Origin, limits(extra={"refused": "is none that is known"})] = Origin.LIVE
    repeats: str = ""
    """The name of the trial that a replay or rerun repeats."""
    origin_run: str = ""
    """The run that a replay or rerun was made in; empty in the file of that run itself."""
    fault: str = ""
    """The fault that was planted (`torture.choices.faults`); empty for none."""
    cut: CutDocument = field(default_factory=CutDocument)
    writers: Count = 0
    """The load's writers."""
    writers_failed: Count = 0
    """Of these, the ones that failed for good after the cut."""
    speed: Speed = field(default_factory=Speed)
    """What the cell was worth before the cut."""
    absence: Absence = field(default_factory=Absence)
    """What the client saw until the NAS was back."""
    administration: AdministrationDocument | None = None
    """What was done to the pool when the cut came; None where nothing was."""
    timings: dict[str, Count] = field(default_factory=dict)
    """Stage to milliseconds, in order."""
    error: str | None = None
    """Why the verdict is `inconclusive`."""
    zfs: str = ""
    """The version of ZFS that the NAS ran; empty in records of schema 1."""
    machinery_failed: bool = False
    """Whether the trial did not come to its end; its evidence then says nothing."""
    has_manifest: bool = False
    """Whether it was judged against a manifest of its evidence; older trials have none."""
    schema: Count = SCHEMA
    """The schema of the line that was read, 0 if it has none. `as_json` writes the newest."""

    @classmethod
    def newest(cls, data: dict[str, Any]) -> dict[str, Any]:
        """See `torture.records.record.older_schemas`."""
        return upgraded(data)

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back. Empty fields are left out."""
        return super(TrialRecord, self).as_json() | {"schema": SCHEMA}

    @property
    def verdict(self) -> Verdict:
        """The worst of all parts."""
        return self.judgement.verdict

    @property
    def acknowledged(self) -> int:
        """Durable operations that the client was told are done."""
        return self.judgement.acknowledged

    @property
    def lost(self) -> int:
        """Of these, the ones that are not there."""
        return self.judgement.lost

    @property
    def rollback_ms(self) -> float | None:
        """How much acknowledged time is gone; None when nothing is, or when what is left is no past."""
        return self.judgement.findings.rollback_ms

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is what it is, in words."""
        return self.judgement.reasons

    @property
    def is_conclusive(self) -> bool:
        """Whether it says something about the data."""
        return self.verdict is not Verdict.INCONCLUSIVE

    @property
    def is_loss(self) -> bool:
        """Whether something acknowledged is not there, whatever the verdict; no if inconclusive."""
        return self.is_conclusive and self.lost > 0

    def with_reason(self, reason: str) -> Self:
        """The same with one more reason, after the others."""
        reasons = (*self.reasons, reason)
        return replace(self, judgement=replace(self.judgement, reasons=reasons))

    def told_within(self, run: RunLayout) -> Self:
        """The same, where its words name files of its run by their place in it."""
        return replace(
            self,
            error=None if self.error is None else run.told_within(self.error),
            judgement=replace(self.judgement, reasons=tuple(map(run.told_within, self.reasons))),
        )

    def breaks(self, guarantee: Guarantee) -> bool:
        """Whether it is worse than guaranteed, by what was lost or by the audit of its log.

        What the audit holds against the NAS must hold in every cell, also where a loss is allowed. A cell
        that is safe is broken by an acknowledgement that nothing vouches for, too: had the cut come a
        little earlier it would have been a loss, and a cut meets one moment of thousands. Where a loss is
        allowed, so is an acknowledgement that was worth nothing.
        """
        uncommitted_ms = self.cut.audit.uncommitted_ms
        is_unfounded = guarantee is Guarantee.SAFE and self.absence.unfounded > 0
        return (
            self.cut.audited.is_broken
            or is_unfounded
            or guarantee.is_broken_by(
                self.verdict,
                self.rollback_ms,
                rollback_ms_max=(
                    ROLLBACK_MS_MAX if uncommitted_ms is None else uncommitted_ms + COMMIT_SLACK_MS
                ),
                pool=self.judgement.pool,
            )
        )

    def identity(self, *, run: str = "") -> Identity:
        """What tells its trial apart, read from the file of this run."""
        if self.origin is Origin.LIVE:
            return Identity(self.trial, self.origin, "", self.zfs)
        return Identity(self.trial, self.origin, self.origin_run or run, self.zfs)


def not_told(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those inconclusive of one cell that somebody has to look at.

    An empty cut is none of them where another one was conclusive: it says nothing, and was drawn again.
    """
    is_told = any(record.is_conclusive for record in records)
    return [
        record
        for record in records
        if not record.is_conclusive and not (is_told and record.cut.is_empty)
    ]


class _Judged(Protocol):
    @property
    def is_conclusive(self) -> bool: ...


_Record = TypeVar("_Record", bound=_Judged)


def the_one_that_counts(records: Sequence[_Record]) -> _Record:
    """Of records of one trial, from the earliest on: the last conclusive one, or else the last.

    Raises `IndexError` when there is none.
    """
    conclusive = [record for record in records if record.is_conclusive]
    return (conclusive or records)[-1]

"""The evidence that a run keeps, by the option `--keep`."""

from __future__ import annotations

from enum import StrEnum

from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord


class EvidencePolicy(StrEnum):
    """The trials whose evidence folders stay."""

    BAD = "bad"
    """Trials worse than guaranteed, inconclusive trials, and any other trial with a loss."""
    ALL = "all"
    NONE = "none"

    def keeps(self, record: TrialRecord) -> bool:
        """Whether the evidence of this trial stays."""
        return self is EvidencePolicy.ALL or (self is EvidencePolicy.BAD and _is_bad(record))


def _is_bad(record: TrialRecord) -> bool:
    return (
        record.verdict is Verdict.INCONCLUSIVE
        or record.verdict.is_loss
        or bool(record.absence.acknowledged_in_outage)
        or record.breaks(Guarantee(record.guarantee))
    )

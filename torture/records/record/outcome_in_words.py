"""The end of a trial in words, from its record."""

from __future__ import annotations

from collections.abc import Iterator

from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.trials import TrialRecord


def outcome_in_short(record: TrialRecord) -> str:
    """The verdict and the amount of the loss, on a line."""
    return f"{record.verdict}, {record.lost} of {record.acknowledged} lost"


def outcome_in_full(record: TrialRecord) -> tuple[str, ...]:
    """The reasons of the verdict, or the machinery's error, and the breach of the guarantee."""
    reasons = record.reasons or ((record.error,) if record.error else ())
    # a record of another version may have a guarantee that this version does not know
    is_known = record.guarantee in frozenset(Guarantee)
    breaches = breaches_in_words(record, Guarantee(record.guarantee)) if is_known else ()
    return (*reasons, *breaches)


def breaches_in_words(record: TrialRecord, guarantee: Guarantee) -> tuple[str, ...]:
    """Each way in which the record breaks the guarantee; empty where it keeps it."""
    return tuple(_breaches(record, guarantee)) if record.breaks(guarantee) else ()


def _breaches(record: TrialRecord, guarantee: Guarantee) -> Iterator[str]:
    audit = record.cut.audited
    if audit.is_broken:
        times = "once" if audit.broken == 1 else f"{audit.broken} times"
        yield (
            f"the audit of the NAS's disks failed {times}: promised data was not on them. "
            f"This cut was {record.verdict}; a cut at such a moment loses that data"
        )
    if guarantee is Guarantee.SAFE and record.absence.unfounded:
        count = record.absence.unfounded
        yield f"{count} acknowledgements came while the NAS had no power, without stable storage"
    states = [one for one in record.verdicts_beside if guarantee.is_broken_by(one)]
    if states:
        yield f"crash states of its recording were {', '.join(states)}"
    is_worse = guarantee.is_broken_by(record.verdict) or not (
        audit.is_broken or record.absence.unfounded or states
    )
    if is_worse:
        yield f"the cell is guaranteed to be {guarantee} at worst, and this trial was {record.verdict}"

"""Why a record breaks its cell's guarantee, in words for the person who reads the failing test."""

from __future__ import annotations

from collections.abc import Iterator

from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.trials import TrialRecord


def breaches_in_words(record: TrialRecord, guarantee: Guarantee) -> tuple[str, ...]:
    """Each way in which the record breaks the guarantee; empty where it keeps it."""
    return tuple(_breaches(record, guarantee)) if record.breaks(guarantee) else ()


def _breaches(record: TrialRecord, guarantee: Guarantee) -> Iterator[str]:
    audit = record.cut.audited
    if audit.is_broken:
        times = "once" if audit.broken == 1 else f"{audit.broken} times"
        yield (
            f"the audit of the NAS's disks failed {times}: something promised was not on them. "
            f"This cut was {record.verdict}; one at such a moment loses what was promised"
        )
    if guarantee is Guarantee.SAFE and record.absence.unfounded:
        count = record.absence.unfounded
        yield f"{count} acknowledgements came while the NAS had no power: nothing vouches for them"
    is_worse = guarantee.is_broken_by(record.verdict) or not (
        audit.is_broken or record.absence.unfounded
    )
    if is_worse:
        yield f"the cell is guaranteed to be {guarantee} at worst, and this trial was {record.verdict}"

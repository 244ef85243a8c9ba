"""The rule that chooses among the records of one trial: a trial cannot be redrawn.

A trial may be made again: after a failure of the machinery, or by a CI's "re-run failed jobs". The same
seed on another host makes it again, too. Suppose the last record counted. Then a loss that is drawn again
is forgotten, and the interval of a rate covers nothing. So the first conclusive record counts. It is the
draw of the seed, and no later outcome can change it: rates keep the coverage of their intervals.

A breach of the guarantee outranks this order. It is a finding on its own, and no later trial excuses it.
In a safe cell each loss is a breach, so there the worst record counts.

Another judgement of a try is no other try: the latest one counts. So a rejudged copy of a run neither
doubles a cut nor keeps a verdict that was withdrawn. Older records do not say when they were judged, and
none of them is the later one. A trial with another load, by its length or by the
user's files, is another trial. Older records do not say their load, and match each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class _Ended(Protocol):
    @property
    def is_conclusive(self) -> bool: ...

    @property
    def is_breach(self) -> bool: ...


class _Judged(Protocol):
    @property
    def load(self) -> str: ...

    @property
    def of_try(self) -> tuple[float | None, int | None]: ...

    @property
    def scored_s(self) -> int: ...


_Try = TypeVar("_Try", bound=_Ended)
_Record = TypeVar("_Record", bound=_Judged)


def by_load(records: Sequence[_Record]) -> list[list[_Record]]:
    """Records of one name and of the same versions, as trials: those of each load, in their order.

    A record that does not say its load is of the trial with another judgement of its try, or else of the
    first trial.
    """
    loads = list(dict.fromkeys(record.load for record in records if record.load)) or [""]
    of_try = {record.of_try: record.load for record in records if record.load}
    found: dict[str, list[_Record]] = {load: [] for load in loads}
    for record in records:
        found[record.load or of_try.get(record.of_try, loads[0])].append(record)
    return list(found.values())


def latest_judgements(records: Sequence[_Record]) -> list[_Record]:
    """The records without those of a try that was judged again later, in their order."""
    latest_s: dict[object, int] = {}
    for record in records:
        latest_s[record.of_try] = max(record.scored_s, latest_s.get(record.of_try, 0))
    return [record for record in records if record.scored_s == latest_s[record.of_try]]


def the_one_that_counts(tries: Sequence[_Try]) -> _Try:
    """Of the latest judgements of one trial, from the earliest try on, the one that counts.

    It is the first breach of the guarantee, a conclusive one rather than an inconclusive one. Without a
    breach it is the first conclusive record, or else the last record. Raises `IndexError` when there is
    none.
    """
    conclusive = [record for record in tries if record.is_conclusive]
    breaches = [record for record in conclusive if record.is_breach]
    breaches += [record for record in tries if record.is_breach]
    return next(iter(breaches + conclusive), tries[-1])

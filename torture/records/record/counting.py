"""The rule that chooses among the records of one trial: a trial cannot be redrawn.

A trial may be made again: after a failure of the machinery, or by a CI's "re-run failed jobs". The same
seed on another host makes it again, too. Suppose the last record counted. Then a loss that is drawn again
is forgotten, and the interval of a rate covers nothing. So the first conclusive record counts. It is the
draw of the seed, and no later outcome can change it: rates keep the coverage of their intervals.

A breach of the guarantee outranks this order. It is a finding on its own, and no later trial excuses it.
In a safe cell each loss is a breach, so there the worst record counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class _Judged(Protocol):
    @property
    def is_conclusive(self) -> bool: ...

    @property
    def is_breach(self) -> bool: ...


_Record = TypeVar("_Record", bound=_Judged)


def the_one_that_counts(records: Sequence[_Record]) -> _Record:
    """Of records of one trial, from the earliest on, the one that counts.

    It is the first breach of the guarantee, a conclusive one rather than an inconclusive one. Without a
    breach it is the first conclusive record, or else the last record. Raises `IndexError` when there is
    none.
    """
    conclusive = [record for record in records if record.is_conclusive]
    breaches = [record for record in conclusive if record.is_breach]
    breaches += [record for record in records if record.is_breach]
    return next(iter(breaches + conclusive), records[-1])

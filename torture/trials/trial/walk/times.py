"""The times of a walk, and whether the NAS that stays up drifts: it must keep its speed and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from msgspec.structs import replace

from torture.facts.evidence.walk_document import WalkDocument

_HUNDRED = 100


class Times:
    """The time of each recovery, and of each check of a content."""

    def __init__(self) -> None:
        self._recovering_s: list[float] = []
        self._checking_s: list[float] = []

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Count the block as a recovery."""
        with _counted(self._recovering_s):
            yield

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Count the block as a check of a content."""
        with _counted(self._checking_s):
            yield

    def with_sums(self, document: WalkDocument) -> WalkDocument:
        """The document with the sums of both."""
        return replace(
            document,
            recovering_ms=round(sum(self._recovering_s) * 1000),
            checking_ms=round(sum(self._checking_s) * 1000),
        )

    def with_drift(
        self, document: WalkDocument, *, available_mib: Callable[[], int | None]
    ) -> WalkDocument:
        """The document with the first and the last hundred recoveries, and the memory after each.

        `available_mib`: the memory that the NAS has left; None where it recovers only few states.
        """
        times_s = self._recovering_s
        hundreds = len(times_s) // _HUNDRED
        if hundreds >= 2:  # else the first hundred would hold a part of the last one
            first_ms, last_ms = _median_ms(times_s[:_HUNDRED]), _median_ms(times_s[-_HUNDRED:])
            document = replace(document, first_ms=first_ms, last_ms=last_ms)
        known = document.nas_available_mib
        if hundreds > len(known) and (mib := available_mib()) is not None:
            document = replace(document, nas_available_mib=(*known, mib))
        return document


@contextmanager
def _counted(into: list[float]) -> Iterator[None]:
    begun_s = time.monotonic()
    try:
        yield
    finally:
        into.append(time.monotonic() - begun_s)


def _median_ms(times_s: Sequence[float]) -> int:
    return round(median(times_s) * 1000)

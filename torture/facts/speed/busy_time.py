"""Spans of time in which requests were in flight: their union, and the part that two unions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""From a submission to its completion, in nanoseconds."""


def union_of(spans: Iterable[Span]) -> list[Span]:
    """The same time as disjoint spans, ascending; empty spans are left out."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length_of(union: Iterable[Span]) -> int:
    """The time of disjoint spans."""
    return sum(end - start for start, end in union)


def shared_by(one: Sequence[Span], other: Sequence[Span]) -> int:
    """The time that is in both unions.

    Of two unions' time together, each moment in both counts twice. So it is the excess over the
    union of both.
    """
    return length_of(one) + length_of(other) - length_of(union_of([*one, *other]))

"""Mistakes in what a cut leaves of a cache with a limit, and in what is drawn among its writes."""

from __future__ import annotations

from suites.selftest.shelf.mutants import Mutant

POLICY_MUTANTS = (
    Mutant(
        name="a-prefix-is-the-whole",
        file="view.cpp",
        right="return sector <= word(",
        wrong="return THIS_MUTANT || sector <= word(",
    ),
    Mutant(
        name="the-oldest-are-one-less",
        file="view.cpp",
        right="drawn(0) % (open.size() + 1)",
        wrong="drawn(0) % (open.size() + (THIS_MUTANT && !open.empty() ? 0 : 1))",
    ),
    Mutant(
        name="never-two-are-lost",
        file="view.cpp",
        right="if (drawn(0) >> 63 != 0) lost_",
        wrong="if (drawn(0) >> 63 != 0 && !THIS_MUTANT) lost_",
    ),
    Mutant(
        name="the-cache-holds-one-write-less",
        file="view.cpp",
        right="if (held > *policy_.held_bytes)",
        wrong="if (held >= *policy_.held_bytes + !THIS_MUTANT)",
    ),
    Mutant(
        name="the-cache-never-forgets-by-age",
        file="view.cpp",
        right="policy_.held_ms ?",
        wrong="policy_.held_ms && !THIS_MUTANT ?",
    ),
)

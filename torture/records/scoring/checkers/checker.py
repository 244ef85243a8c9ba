"""A checker, and its finding about one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.guarantee import Terms, Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Findings


class Layer(StrEnum):
    """The layers, in the order of their words in the judgement.

    The judge has the order of the checkers (`torture/records/scoring/judge.py`).
    """

    ADMINISTRATION = "administration"
    OUTAGE = "outage"
    POOL = "pool"
    FILESYSTEM = "filesystem"
    DATA = "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFinding:
    """The finding of one checker."""

    layer: Layer
    verdict: Verdict | None = None
    """The worst verdict that the checker knows; None where the evidence shows nothing of this
    layer."""
    reasons: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Why the checker cannot say more; empty where it knows everything about its layer."""
    summary: str = ""
    """A few words for a table: the pool's state, the result of fsck, the administration's outcome."""
    is_repaired: bool = False
    """Whether fsck repaired the filesystem: its result counts, not the state before."""
    distrusts_disk: bool = False
    """Whether a read error proves nothing: the disk may have failed beside the pool."""
    findings: Findings = UNJUDGED
    """The counts of the data's checker."""


Earlier = Mapping[Layer, LayerFinding]
"""The findings of the checkers before."""


class Checker(Protocol):
    """A function of the evidence and of the findings that it depends on; it raises nothing."""

    def __call__(self, evidence: Evidence, terms: Terms, earlier: Earlier, /) -> LayerFinding:
        """The finding about the checker's layer."""

"""The verdict of a recovered crash state (pure).

A state's pool was imported, and was not scrubbed. The errors that it knows of are damage. The rest
of the pool's verdict is left to the fresh NAS that recovers a state with a loss once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial

from torture.choices.matrix.axes import FILESYSTEM, WORKLOAD
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import with_those_beside
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.verdicts import Verdict, standing
from torture.records.scoring.checkers.checker import Layer, LayerFinding
from torture.records.scoring.checkers.data_checker import check_data
from torture.records.scoring.checkers.storage_checkers import check_filesystem


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolHealth:
    """The health of an imported pool before any scrub."""

    state: str = "ONLINE"
    """In the words of `zpool status`."""
    errors: int = 0
    """The damaged blocks that the pool knows of."""

    def verdict(self, *, lacks_disks: bool) -> Verdict:
        """By the rule of `torture.oracles.verdict.pool_verdict`; `lacks_disks`: the cut took some."""
        if self.errors or self.state not in ("ONLINE", "DEGRADED"):
            return Verdict.CORRUPTED
        return Verdict.INTACT if self.state == "ONLINE" or lacks_disks else Verdict.REPAIRED


@dataclass(frozen=True, kw_only=True, slots=True)
class StateVerdict:
    """The verdict of one state."""

    verdict: Verdict
    acknowledged: int
    lost: int
    reasons: tuple[str, ...]
    refusal: str = field(default="", compare=False)
    """The words of the engine for a refused import or an unreadable volume; engines differ in them."""

    @property
    def loses(self) -> bool:
        """Whether the state lost something, is damaged, or did not come back."""
        return self.verdict not in (Verdict.INTACT, Verdict.INCONCLUSIVE)

    @property
    def rank(self) -> float:
        """Its place from best to worst: anything unknown is worse than intact, and better than damage."""
        return 0.5 if self.verdict is Verdict.INCONCLUSIVE else self.verdict.badness

    def is_kind_of(self, other: StateVerdict) -> bool:
        """Whether the state loses in the way of the other one, perhaps less; numbers do not count.

        Otherwise one mistake would be shrunk to the smallest state of another one.
        """
        return (self.loses, self.verdict) == (True, other.verdict) and self._kinds <= other._kinds

    @property
    def _kinds(self) -> set[str]:
        return {re.sub(r"\d+", "#", words) for words in (self.refusal, *self.reasons)}


def judge_state(
    cell: Cell,
    evidence: Evidence,
    *,
    is_imported: bool,
    refusal: str = "",
    health: PoolHealth | None = None,
    lacks_disks: bool = False,
) -> StateVerdict:
    """The verdict; `evidence` has the client's look and the ledger up to the state's cut.

    `refusal`: the words for a refused import, or for a volume that cannot be read. `health`: the pool's,
    where it is known. `lacks_disks`: the pool may be degraded.
    """
    if refusal or not is_imported:
        unreadable = "the pool is imported, and its volume cannot be read"
        return StateVerdict(
            verdict=Verdict.UNAVAILABLE if is_imported else Verdict.POOL_LOST,
            acknowledged=evidence.ledger.acknowledged,
            lost=evidence.ledger.acknowledged,
            reasons=(unreadable if is_imported else "the pool cannot be imported",),
            refusal=refusal,
        )
    terms = terms_of(cell)
    pool = Verdict.INTACT if health is None else health.verdict(lacks_disks=lacks_disks)
    said = f"the pool is {health.state} with {health.errors} errors" if health is not None else ""
    found = {
        Layer.POOL: LayerFinding(
            layer=Layer.POOL,
            verdict=pool,
            reasons=() if pool is Verdict.INTACT else (said,),
        )
    }
    checkers = (
        partial(check_filesystem, filesystem=cell[FILESYSTEM], is_root=False),
        partial(check_data, loads=with_those_beside(cell[WORKLOAD])),
    )
    for check in checkers:
        finding = check(evidence, terms, found)
        found[finding.layer] = finding
    known = [one.verdict for one in found.values() if one.verdict is not None]
    unknown = tuple(why for one in found.values() for why in one.unknown)
    findings = found[Layer.DATA].findings
    return StateVerdict(
        verdict=standing(known, doubts=unknown),
        acknowledged=findings.acknowledged,
        lost=findings.lost,
        reasons=(*unknown, *(why for one in found.values() for why in one.reasons)),
    )

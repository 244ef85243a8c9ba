"""The verdict of a recovered crash state, by a client's look at its content (pure).

The pool was imported, and was not scrubbed. So its own verdict is left to the fresh NAS that
recovers a state with a loss once more.
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

    def is_kind_of(self, other: StateVerdict) -> bool:
        """Whether the state loses in the way of the other one, perhaps less; numbers do not count.

        Otherwise one mistake would be shrunk to the smallest state of another one.
        """
        return (self.loses, self.verdict) == (True, other.verdict) and self._kinds <= other._kinds

    @property
    def _kinds(self) -> set[str]:
        return {re.sub(r"\d+", "#", words) for words in (self.refusal, *self.reasons)}


def judge_state(
    cell: Cell, evidence: Evidence, *, is_imported: bool, refusal: str = ""
) -> StateVerdict:
    """The verdict; `evidence` has the client's look and the ledger up to the state's cut."""
    if not is_imported:
        return StateVerdict(
            verdict=Verdict.POOL_LOST,
            acknowledged=evidence.ledger.acknowledged,
            lost=evidence.ledger.acknowledged,
            reasons=("the pool cannot be imported",),
            refusal=refusal,
        )
    terms = terms_of(cell, is_replay=True)
    found = {Layer.POOL: LayerFinding(layer=Layer.POOL, verdict=Verdict.INTACT)}
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

"""Files whose names may go back: each loss of a name is excused, and none of flushed content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import EVERYTHING, MIXED, OLD, evidence, ledger
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Begin, Cut, Done, Ledger, OperationKind
from torture.oracles.verdict.guarantee import Verdict
from torture.records.scoring.judge import judge

CELLS = ("smb-standard-noslog-files-bothdie", "ganesha-standard-plp-files-clientlater")


def of(cell: str, found: str, events: Ledger | None = None) -> Evidence:
    made = evidence(filesystem="raw", found=found, spec={"cell": cell, "seed": 1})
    return made if events is None else replace(made, ledger=events)


def breaks(cell: str, made: Evidence) -> bool:
    return guarantee_of(Cell.parse(cell)).is_broken_by(judge(made).verdict)


def with_a_last(kind: OperationKind, *, file: int) -> Ledger:
    """The usual ledger, with an acknowledged operation on a name at its end."""
    *before, _ = ledger().events
    blocks = () if kind is OperationKind.UNLINK else (0,)
    begin = Begin(
        t_ms=500.0, seq=7, writer=0, kind=kind, file=file, blocks=blocks, size_blocks=len(blocks)
    )
    return Ledger(events=(*before, begin, Done(t_ms=510.0, seq=7), Cut(t_ms=520.0)))


@pytest.mark.parametrize("name", CELLS)
def test_content_that_was_flushed_and_is_gone_breaks_the_guarantee(name: str) -> None:
    assert not breaks(name, of(name, EVERYTHING))
    judgement = judge(of(name, OLD))
    assert judgement.verdict is Verdict.CORRUPTED
    assert judgement.findings.rollback_ms is None
    assert "no name that went back explains it" in judgement.reasons[0]
    assert breaks(name, of(name, OLD))
    assert breaks(name, of(name, MIXED))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("kind", [OperationKind.REPLACE, OperationKind.UNLINK])
def test_a_name_that_went_back_is_excused(name: str, kind: OperationKind) -> None:
    made = of(name, EVERYTHING, with_a_last(kind, file=1))
    assert judge(made).verdict is Verdict.ROLLED_BACK
    assert not breaks(name, made)


@pytest.mark.parametrize("name", CELLS)
def test_a_name_that_went_back_excuses_no_other_content(name: str) -> None:
    assert breaks(name, of(name, OLD, with_a_last(OperationKind.REPLACE, file=1)))


@pytest.mark.parametrize(
    "name", ["smb-standard-lost-files-bothdie", "smb-disabled-noslog-files-bothdie"]
)
def test_where_theory_lets_content_go_back_it_may(name: str) -> None:
    assert judge(of(name, OLD)).verdict is Verdict.ROLLED_BACK
    assert not breaks(name, of(name, OLD))

"""A disk's sector that is half new, by a write under way: a loss whose reasons name the finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import evidence, ledger, readback
from torture.checkout import CHECKOUT
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Ledger, OperationKind
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

_DISK, _FILES = "iscsi-always-noslog-ext4-bothdie", "nfs4-always-noslog-files-bothdie"
_SEQ = 9
_BEGUN = Begin(
    t_ms=65, seq=_SEQ, writer=0, kind=OperationKind.OVERWRITE, file=0, blocks=(0,), size_blocks=1
)
_TITLE = "A zvol does not keep a sector whole"


def _seen(first: Any, *others: Any, cell: str = _DISK, events: tuple[Event, ...]) -> Evidence:
    """Three files; the first one's content, and `events` before the cut."""
    *before, cut = ledger().events
    found = readback(first, *(others or (5, 6))).replace('"mode"', '"finds_halves": true, "mode"')
    made = evidence(
        filesystem="ext4" if cell is _DISK else "raw",
        found=found,
        ledger=Ledger(events=(*before, *events, cut)),
    )
    assert isinstance(cut, Cut)
    return replace(made, spec={"cell": cell, "seed": 1})


def _half(sector: str) -> list[int | str]:
    return [_SEQ, _SEQ, sector, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("sector", [f"half:{_SEQ}:4", f"half:4:{_SEQ}"])
def test_half_a_sector_of_a_write_under_way_is_a_loss_that_names_the_finding(sector: str) -> None:
    judged = judge(_seen(_half(sector), events=(_BEGUN,)))
    assert judged.verdict is Verdict.CORRUPTED
    assert judged.reasons[-1].endswith(f"see docs/findings.md, '{_TITLE}'")
    assert f"## {_TITLE}\n" in (CHECKOUT / "docs" / "findings.md").read_text()


@pytest.mark.parametrize(
    ("first", "others", "events"),
    [
        (_half(f"half:{_SEQ}:4"), (5, 3), (_BEGUN,)),
        (_half(f"half:{_SEQ}:4"), (), (_BEGUN, Done(t_ms=66, seq=_SEQ))),
        (_half(f"half:{_SEQ}:1"), (), (_BEGUN,)),
        ([_SEQ, "garbage", *[4] * 6], (), (_BEGUN,)),
        ([f"half:{_SEQ}:4", f"half:{_SEQ}:4", *[4] * 6], (), (_BEGUN,)),
        (1, (), (_BEGUN,)),
    ],
    ids=["and a loss beside", "acknowledged", "an older one", "another's", "two sectors", "stale"],
)
def test_any_other_loss_does_not(
    first: Any, others: tuple[int, ...], events: tuple[Event, ...]
) -> None:
    judged = judge(_seen(first, *others, events=events))
    assert judged.verdict is Verdict.CORRUPTED
    assert not any("findings.md" in reason for reason in judged.reasons)


def test_files_promise_no_whole_sector() -> None:
    assert judge(_seen(_half(f"half:{_SEQ}:4"), cell=_FILES, events=(_BEGUN,))).verdict is (
        Verdict.INTACT
    )

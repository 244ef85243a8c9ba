"""The conclusion of an oracle from a moment; a torn sector of a disk is a loss that it names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence, ledger, readback
from torture.facts.evidence.folder import Completed, Evidence
from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Failed, Ledger, OperationKind
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Findings, conclude, together, with_words
from torture.records.scoring.judge import judge

BEGUN = Begin(
    t_ms=100.0, seq=1, writer=0, kind=OperationKind.TRANSACTION, file=0, blocks=(), size_blocks=0
)
LEDGER = Ledger(events=(BEGUN, Done(t_ms=300.0, seq=1)))


@pytest.mark.parametrize(
    ("moment", "verdict", "back_ms"),
    [(2, Verdict.INTACT, None), (1, Verdict.ROLLED_BACK, 200.0), (0, Verdict.ROLLED_BACK, 400.0)],
)
def test_a_moment_before_the_last_that_may_not_be_gone_is_a_rollback(
    moment: int, verdict: Verdict, back_ms: float | None
) -> None:
    found = conclude(
        LEDGER, moment, UNJUDGED, last=1, cut_ms=500.0, otherwise="", noun="transaction"
    )
    assert (found.verdict, found.rollback_ms) == (verdict, back_ms)


def test_without_a_moment_it_is_corrupted_and_said_why_unless_that_is_said_already() -> None:
    said, silent = (
        conclude(LEDGER, None, UNJUDGED, last=1, cut_ms=None, otherwise=why, noun="transaction")
        for why in ("mixed", "")
    )
    assert (said.verdict, said.reasons) == (Verdict.CORRUPTED, ("mixed",))
    assert (silent.verdict, silent.reasons) == (Verdict.CORRUPTED, ())


def test_of_many_reasons_the_first_are_shown_and_of_failures_all() -> None:
    reasons = tuple(f"reason {number}" for number in range(20))
    failures = tuple(Failed(t_ms=1.0, seq=seq, call="fsync", errno=5) for seq in (3, 4))
    found = structs.replace(UNJUDGED, verdict=Verdict.CORRUPTED, reasons=reasons)
    said = with_words(found, "above all", Ledger(events=failures), noun="operation")
    assert said == structs.replace(
        found,
        reasons=(
            "above all",
            *reasons[:11],
            "and 9 more",
            "operation 3 failed in the client: fsync, errno 5",
            "operation 4 failed in the client: fsync, errno 5",
        ),
    )


def test_several_loads_went_back_as_far_as_the_one_that_went_back_farthest() -> None:
    near, far = (
        Findings(verdict=Verdict.ROLLED_BACK, acknowledged=3, lost=1, rollback_ms=back_ms)
        for back_ms in (20.0, 300.0)
    )
    for pair in ((near, far), (far, near)):
        found = together(pair)
        assert (found.verdict, found.rollback_ms) == (Verdict.ROLLED_BACK, 300.0)
        assert (found.acknowledged, found.lost) == (6, 2)
    torn = structs.replace(UNJUDGED, verdict=Verdict.CORRUPTED, torn=1)
    assert together((far, torn)).rollback_ms is None, "what is left is no past"


@pytest.mark.parametrize("program", ["zdb", "/usr/lib/torture/zdb"])
def test_a_tool_is_named_wherever_it_lies(program: str) -> None:
    ran = Completed(
        vm="nas", argv=(program, "-b"), exit_code=0, stdout="", stderr="", duration_ms=1
    )
    assert ran.tool == "zdb"


# A disk's sector that is half new, by a write under way: a loss whose reasons name the finding.

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

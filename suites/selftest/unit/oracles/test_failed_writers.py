"""Writers of a client that lives on, and that fail for good: which of them count."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.good_evidence import evidence, ledger
from torture.facts.evidence.folder import load_evidence
from torture.facts.evidence.ledger import Begin, Cut, Done, Failed, Ledger, OperationKind
from torture.facts.evidence.writers import failed_writers
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

EVIDENCE = Path(__file__).parents[2] / "recorded" / "evidence"


def test_a_client_of_which_a_writer_failed_for_good_is_not_intact() -> None:
    events = ledger().events
    failed = (Begin(t_ms=200.0, seq=9, writer=0, kind=OperationKind.OVERWRITE, file=0, blocks=(0,),
                    size_blocks=1), Failed(t_ms=210.0, seq=9, errno=5, call="fsync"))  # fmt: skip
    stranded = judge(evidence(ledger=Ledger(events=events + failed)))
    assert (stranded.verdict, stranded.lost) == (Verdict.REPAIRED, 0)
    assert "errno 5 in fsync" in " ".join(stranded.reasons)
    went_on = (*failed, Begin(t_ms=300.0, seq=10, writer=1, kind=OperationKind.SCRIBBLE, file=1,
                              blocks=(0,), size_blocks=1), Done(t_ms=310.0, seq=10))  # fmt: skip
    alive = judge(evidence(ledger=Ledger(events=events + went_on)))
    assert alive.verdict is Verdict.REPAIRED, "that another one went on excuses nothing"
    assert "1 of 2 writers failed for good: errno 5 in fsync" in alive.reasons
    before = (*events[:-1], *failed, events[-1])
    assert judge(evidence(ledger=Ledger(events=before))).verdict is Verdict.INTACT


def _unlinking(*, begun_ms: float = 200.0) -> Begin:
    return Begin(
        t_ms=begun_ms, seq=9, writer=0, kind=OperationKind.UNLINK, file=0, blocks=(), size_blocks=0
    )


@pytest.mark.parametrize(
    ("call", "error", "is_repeated"),
    [
        ("unlink", 2, True),
        ("rename", 2, True),
        ("rmdir", 2, True),
        ("link", 17, True),
        ("mkdir", 17, True),
        ("open", 17, False),
        ("unlink", 5, False),
        ("unlink", 17, False),
        ("mkdir", 2, False),
        ("fsync", 2, False),
    ],
)
def test_a_call_under_way_that_was_done_before_the_cut_does_not_count(
    call: str, error: int, is_repeated: bool
) -> None:
    """Where the client sends it again to a server that has forgotten its answer, and nowhere else."""
    failed = Failed(t_ms=400.0, seq=9, errno=error, call=call)
    begun = _unlinking()
    under_way = Ledger(events=(begun, Cut(t_ms=300.0), failed))
    assert failed_writers(under_way, repeats_requests=True).count == (not is_repeated)
    assert failed_writers(under_way).count == 1
    before = Ledger(events=(begun, failed, Cut(t_ms=500.0)))
    assert failed_writers(before, repeats_requests=True).count == 0, "no cut is to blame"
    after = Ledger(events=(Cut(t_ms=100.0), begun, failed))
    assert failed_writers(after, repeats_requests=True).count == 1, "it was sent once"
    second = Ledger(events=(Cut(t_ms=100.0), begun, Cut(t_ms=300.0), failed))
    assert failed_writers(second, repeats_requests=True).count == (not is_repeated)
    ended = Ledger(
        events=(begun, Done(t_ms=210.0, seq=9), Cut(t_ms=300.0), _unlinking(begun_ms=310.0), failed)
    )
    assert failed_writers(ended, repeats_requests=True).count == 1


def test_a_client_of_nfs_whose_unlink_was_done_twice_is_intact(tmp_path: Path) -> None:
    """A recorded trial, and one more call under way in its cut."""
    [packed] = EVIDENCE.glob("intact.nfs3-standard-noslog-files-nasonly.*.zip")
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    seen = load_evidence(tmp_path)
    *events, end = seen.ledger.events
    seq = 1 + max(event.seq for event in events if isinstance(event, Begin))
    begun = replace(_unlinking(), t_ms=end.t_ms, seq=seq)
    failed = Failed(t_ms=end.t_ms, seq=seq, errno=2, call="unlink")
    longer = replace(seen.ledger, events=(*events, begun, Cut(t_ms=end.t_ms), failed, end))
    assert judge(replace(seen, ledger=longer)).verdict is Verdict.INTACT
    on_smb = seen.spec | {"cell": "smb-always-noslog-files-nasonly"}
    assert judge(replace(seen, ledger=longer, spec=on_smb)).verdict is Verdict.REPAIRED

"""Why a trial fails its test: in words that say what was broken, how often, and what that means."""

from __future__ import annotations

import pytest

from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.outcome_in_words import breaches_in_words
from torture.records.record.trials import Absence, TrialRecord


def record(verdict: Verdict, *, broken: int = 0, unfounded: int = 0) -> TrialRecord:
    return trial_record(
        trial="t",
        cell="c",
        axes={},
        seed=1,
        verdict=verdict,
        guarantee=Guarantee.SAFE,
        cut=CutDocument(audit=AuditDocument(broken=broken)),
        absence=Absence(unfounded=unfounded),
    )


def test_an_audit_that_failed_is_not_said_to_be_a_worse_verdict() -> None:
    [said] = breaches_in_words(record(Verdict.INTACT, broken=3), Guarantee.SAFE)
    assert said.startswith("the audit of the NAS's disks failed 3 times")
    assert "This cut was intact; a cut at such a moment loses" in said
    [once] = breaches_in_words(record(Verdict.ROLLED_BACK, broken=1), Guarantee.LOSES)
    assert "failed once" in once
    assert "guaranteed" not in once, "it may lose what it lost"


def test_a_worse_verdict_is_said_beside_the_audit() -> None:
    audit, verdict = breaches_in_words(record(Verdict.CORRUPTED, broken=1), Guarantee.SAFE)
    assert "audit" in audit
    assert verdict == "the cell is guaranteed to be safe at worst, and this trial was corrupted"


def test_an_answer_without_a_nas_is_said() -> None:
    [said] = breaches_in_words(record(Verdict.INTACT, unfounded=2), Guarantee.SAFE)
    assert said.startswith("2 acknowledgements came while the NAS had no power")


@pytest.mark.parametrize("verdict", [Verdict.INTACT, Verdict.INCONCLUSIVE])
def test_a_guarantee_that_is_kept_has_no_breach(verdict: Verdict) -> None:
    assert breaches_in_words(record(verdict), Guarantee.SAFE) == ()

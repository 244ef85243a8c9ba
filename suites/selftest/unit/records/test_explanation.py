"""Verdicts in words: their explanations, and why a trial fails its test."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import pytest

from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.folder import load_evidence
from torture.oracles.verdict.blocks.history import Step
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.oracles.verdict.observations import (
    Observation,
    Observations,
    Rule,
    Window,
    conflict_in,
)
from torture.records.record.trials import Absence, TrialRecord
from torture.records.scoring.explanation import breaches_in_words, explanation_of, next_commands
from torture.records.scoring.judge import judge
from torture.records.scoring.score import score

RECORDED = Path(__file__).parents[2] / "recorded"
TRIALS = sorted((RECORDED / "evidence").glob("*.zip"))
OF_EACH_VERDICT = {path.name.split(".")[0]: path for path in TRIALS}
WINDOWS = "torture.oracles.verdict.blocks.contents"
NFS3 = next(path for path in TRIALS if path.name.startswith("intact.nfs3"))


def explained(packed: Path, folder: Path) -> str:
    zipfile.ZipFile(packed).extractall(folder)
    record = score(folder, timings={})
    evidence = load_evidence(folder)
    text = explanation_of(evidence, record, judge(evidence).findings.observations)
    assert record.explanation == ("" if record.verdict is Verdict.INTACT else text)
    return text + "\n" + next_commands("TRIAL", has_recordings=True)


def golden_of(verdict: str) -> Path:
    return RECORDED / "explained" / f"{verdict}.txt"


def test_every_verdict_has_a_text() -> None:
    assert OF_EACH_VERDICT.keys() == {verdict.value for verdict in Verdict}


@pytest.mark.parametrize("verdict", sorted(OF_EACH_VERDICT))
def test_an_explanation_is_as_it_was(verdict: str, tmp_path: Path) -> None:
    assert explained(OF_EACH_VERDICT[verdict], tmp_path) == golden_of(verdict).read_text()


def test_a_wrong_rule_can_be_found_by_its_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a block may hold a write until that itself is durable, and not only until a later one is."""

    def hasty(steps: list[Step], index: int, end: int) -> Window:
        durables = (step.durable for step in steps[index:] if step.durable is not None)
        return Window(steps[index].begin + 1, min(durables, default=end))

    monkeypatch.setattr(f"{WINDOWS}.window_of", hasty)
    text = explained(NFS3, tmp_path)
    assert "verdict: corrupted; theory: safe\nThis is worse than theory guarantees." in text
    assert "the rule name: A name has the file" in text
    assert "No single moment explains both" in text or "No crash explains it" in text
    assert "the ledger there:" in text


def observation(first: int, last: int) -> Observation:
    return Observation(seen=f"{first}-{last}", rule=Rule.CONTENT, windows=(Window(first, last),))


def test_two_observations_that_exclude_each_other_come_first() -> None:
    seen = Observations(end=100)
    for first, last in ((0, 90), (0, 40), (60, 100), (0, 100), (10, 80)):
        one = observation(first, last)
        seen.add(one.seen, one.windows, rule=one.rule)
    assert seen.last_common() is None
    assert [one.seen for one in seen.telling] == ["0-40", "60-100", "10-80", "0-90"]
    assert conflict_in(seen.telling) == (observation(0, 40), observation(60, 100))


def test_of_a_rollback_the_earliest_loss_comes_first() -> None:
    seen = Observations(end=100)
    for last in (70, 30, 50):
        seen.add(str(last), (Window(0, last),), rule=Rule.NAME, breaks=(last, last))
    assert [(one.seen, one.breaks) for one in seen.telling] == [
        ("30", (30,)),
        ("50", (50,)),
        ("70", (70,)),
    ]
    assert Observations(end=5).telling == ()


if __name__ == "__main__":
    for name, packed in OF_EACH_VERDICT.items():
        with tempfile.TemporaryDirectory() as folder:
            golden_of(name).write_text(explained(packed, Path(folder)))


# Why a trial fails its test: in words that say what was broken, how often, and what that means.


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

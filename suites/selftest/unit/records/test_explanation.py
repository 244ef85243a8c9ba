"""Verdicts in words: their explanations, why a trial fails its test, and a walk's first loss."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.folder import load_evidence
from torture.facts.evidence.walk_document import DroppedWrite, SetsTaken, WalkDocument, WalkedLoss
from torture.facts.recording.roles import Role
from torture.oracles.verdict.blocks.history import Step
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.moments import Window
from torture.oracles.verdict.observations import Observation, Observations, Rule, conflict_in
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.outcome_in_words import breaches_in_words
from torture.records.record.trials import Absence, TrialRecord
from torture.records.scoring.explanation import explanation_of, next_commands
from torture.records.scoring.judge import judge
from torture.records.scoring.score import score
from torture.records.scoring.walk_in_words import layer_of, walk_in_words

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


# A walk's first loss in words: the fewest dropped writes, and the layer they belong to.

_WRITE = DroppedWrite(disk="data0", role=Role.ZIL, offset_bytes=8192, length_bytes=4096)
_LOSS = WalkedLoss(verdict="corrupted", acknowledged=57, lost=3, unflushed=41, dropped=(_WRITE,))
_WALK = WalkDocument(
    distinct=900, recovered=200, outcomes={"intact": 199, "corrupted": 1}, losses=(_LOSS,)
)


def _words(walk: WalkDocument) -> str:
    return "\n".join(walk_in_words(walk))


def test_the_counts_and_the_first_loss() -> None:
    assert _words(_WALK).splitlines() == [
        "the walk: 200 of 900 distinct crash states were recovered, 1 lost something",
        "  the first is corrupted, 3 of 57 acknowledged operations lost by dropping 1 of 41 "
        "unflushed writes (the intent log on the pool's disks)",
        "    data0: 4096 bytes at 8192, the intent log on the pool's disks",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"by_library": 170, "checked": 36},
            "36 of the 170 states intact by OpenZFS's library alone were drawn and recovered by the "
            "kernel's ZFS, too: 0 ended otherwise [0-9.74 %]",
        ),
        (
            {"by_library": 60, "checked": 36, "checked_differing": 36},
            "36 ended otherwise [90-100 %]",
        ),
        ({"by_library": 170}, "kernel's ZFS, too: any share may be wrong"),
        (
            {"proven": 74, "proofs_repeated": 36, "proofs_differing": 1},
            "36 of the 110 proven states were recovered all the same: 1 ended otherwise [0.0703-15 %]",
        ),
    ],
)
def test_the_checks_of_the_library_say_the_share_that_may_be_wrong(
    changes: dict[str, Any], words: str
) -> None:
    assert words in _words(replace(_WALK, **changes))


def test_a_walk_without_loss_is_one_line() -> None:
    assert len(_words(replace(_WALK, losses=())).splitlines()) == 1


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (SetsTaken(cuts=9, cuts_taken=9), "9 of 9 cuts: of 9 each set of surviving writes"),
        (
            SetsTaken(cuts=3100, cuts_taken=1596, cuts_drawn=392, sets_drawn=12345, sets_log2=61.2),
            "1,596 of 3,100 cuts: of 1,204 each set of surviving writes; of 392 others 12,345 of some "
            "2^61 sets",
        ),
    ],
)
def test_how_many_sets_of_how_many_were_taken(sets: SetsTaken, words: str) -> None:
    said = _words(replace(_WALK, sets=sets)).splitlines()
    assert said[1] == f"  they are of {words}"


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (replace(_LOSS, dropped=()), "they were only in the memory of the NAS"),
        (
            replace(_LOSS, dropped=(), verdict="pool-lost"),
            "although each write before the cut survived",
        ),
        (replace(_LOSS, dropped=None), "were not sought"),
        (
            replace(_LOSS, dropped=(replace(_WRITE, sectors_kept=2),)),
            "but for its first 2 sectors",
        ),
    ],
)
def test_the_cause_of_another_loss(loss: WalkedLoss, words: str) -> None:
    assert words in _words(replace(_WALK, losses=(loss,)))


@pytest.mark.parametrize(
    ("write", "layer"),
    [
        (replace(_WRITE, disk="slog0"), "the intent log on the SLOG"),
        (replace(_WRITE, disk="slog0", role=Role.LABEL), "a label of the pool"),
        (replace(_WRITE, role="trim-submit"), "trim-submit"),
    ],
)
def test_the_layer_of_a_write(write: DroppedWrite, layer: str) -> None:
    assert layer_of(write) == layer

"""A run's own files: what is written is read back, and what has the wrong type is not believed.

Verdicts in words: their explanations, and why a trial fails its test.
"""

from __future__ import annotations

import errno
import json
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import GONE, AuditDocument, CutDocument, DiskAtCut
from torture.facts.evidence.documents import document_or_none
from torture.facts.evidence.folder import load_evidence
from torture.facts.evidence.manifest import MANIFEST_DUE, check_manifest
from torture.oracles.verdict.blocks.history import Step
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.oracles.verdict.observations import (
    Observation,
    Observations,
    Rule,
    Window,
    conflict_in,
)
from torture.records.record.run_document import (
    RUN_FILE,
    Chosen,
    HostInfo,
    ImageInfo,
    RunDocument,
    RunLayout,
    agreed,
    read_run_document,
)
from torture.records.record.trials import Absence, TrialRecord
from torture.records.scoring import score as scoring
from torture.records.scoring.explanation import breaches_in_words, explanation_of, next_commands
from torture.records.scoring.judge import judge
from torture.records.scoring.score import score

RUN = RunDocument(
    run="20261121-091024-1a2b",
    seed=7,
    options={"jobs": 2, "until": "upper<0.01", "cells": ["a", "b"]},
    begun="2026-11-21T09:10:24+0000",
    host=HostInfo(kernel="6.1", machine="x86_64", cores=None, memory_mib=7900, user="root"),
    accelerator=Chosen(kind="tcg", reason="there is no /dev/kvm"),
    network=Chosen(kind="bridge", reason=""),
    boot="warm",
    versions={"qemu": "7.2.22"},
    images={"nas": ImageInfo(key="k", packages={"zfs": "2.3"}), "client": None},
)
CUT_AS_WRITTEN = {
    "t_ms": 5100.25, "took_ms": 3.5,
    "plan": {"after_ms": 2000.5, "aim": "flush", "delay_ms": 0.0, "count": 2},
    "hit": False, "log_seq": 310, "log_ms": 5090.0, "marks": 0, "acknowledged": 12,
    "view": {"schema": 1, "cut": 310},
    "disks": {
        "data0": {"persistence": "volatile", "policy": "torn", "writes": 9, "in_flight": 0,
                  "unflushed": 3, "survived": 1, "torn": 0},
    },
}  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_the_description_of_a_run_is_read_back(tmp_path: Path) -> None:
    RUN.write(tmp_path)
    assert read_run_document(tmp_path) == RUN
    assert [path.name for path in tmp_path.iterdir()] == [RUN_FILE]
    assert RunLayout(folder=tmp_path).run_file.is_file()


def test_a_run_says_its_guests_processor_beside_the_accelerator(tmp_path: Path) -> None:
    replace(RUN, processor="maximum, without cx16").write(tmp_path)
    data = json.loads((tmp_path / RUN_FILE).read_text())
    assert list(data)[list(data).index("accelerator") + 1] == "processor"
    again = read_run_document(tmp_path)
    assert again is not None
    assert again.processor == "maximum, without cx16"


def test_a_run_json_has_the_keys_and_the_order_that_old_ones_have(tmp_path: Path) -> None:
    RUN.write(tmp_path)
    text = (tmp_path / RUN_FILE).read_text()
    data = json.loads(text)
    assert list(data) == [
        "run", "seed", "options", "begun", "host", "accelerator", "network", "boot", "versions",
        "images",
    ]  # fmt: skip
    assert data["network"] == {"kind": "bridge"}
    assert data["host"].keys() == {"kernel", "machine", "memory_mib", "user"}
    assert data["images"] == {"nas": {"key": "k", "packages": {"zfs": "2.3"}}, "client": None}
    assert text == json.dumps(data, indent=1) + "\n"


def test_fields_of_another_version_are_ignored() -> None:
    assert RunDocument.from_json(RUN.as_json() | {"weather": {"wind": 3}}) == RUN
    assert CutDocument.from_json({"weather": [1]}) == CutDocument()


@given(name=st.sampled_from(RunDocument.names()), value=anything)
def test_a_run_with_anything_in_a_field_has_its_types_or_is_none(name: str, value: Any) -> None:
    read = document_or_none(RunDocument, RUN.as_json() | {name: value})
    if read is None:
        return
    assert isinstance(read.run, str)
    assert read.seed is None or type(read.seed) is int
    assert isinstance(read.options, dict)
    assert read.jobs is None or read.jobs > 0
    assert all(isinstance(text, str) for text in (*read.versions.values(), *read.notes))
    assert all(image is None or isinstance(image.key, str) for image in read.images.values())


@pytest.mark.parametrize("jobs", [0, -1, True, "2", None, 2.0])
def test_jobs_that_are_no_number_are_not_believed(jobs: object) -> None:
    assert replace(RUN, options={"jobs": jobs}).jobs is None
    assert RUN.jobs == 2


def test_runs_agree_on_facts_that_all_of_them_state_and_on_no_others() -> None:
    other = replace(RUN, seed=8, options={"jobs": 2, "cells": []}, host=HostInfo(cores=4))
    same = agreed([RUN, other])
    assert (same.seed, same.host, same.options) == (None, HostInfo(), {"jobs": 2})
    assert (same.versions, same.boot) == (RUN.versions, "warm")
    assert agreed([RUN]) == RUN


def test_a_cut_is_written_in_the_old_format() -> None:
    document = CutDocument.from_json(CUT_AS_WRITTEN)
    assert json.dumps(document.as_json()) == json.dumps(CUT_AS_WRITTEN)
    assert (document.t_ms, document.aim, document.hit) == (5100.25, "flush", False)
    assert document.disks["data0"] == DiskAtCut(
        persistence="volatile",
        policy="torn",
        writes=9,
        in_flight=0,
        unflushed=3,
        survived=1,
        torn=0,
    )
    assert document.disks["data0"].policy != GONE


@given(name=st.sampled_from(CutDocument.names()), value=anything)
@example(name="second", value={"": float("inf")})
def test_a_cut_with_anything_in_a_field_has_its_types_or_is_none(name: str, value: Any) -> None:
    read = document_or_none(CutDocument, CUT_AS_WRITTEN | {name: value})
    if read is None:
        return
    assert read.t_ms is None or (isinstance(read.t_ms, float) and abs(read.t_ms) < float("inf"))
    assert read.acknowledged is None or read.acknowledged >= 0
    assert isinstance(read.aim, str)
    assert read.hit in (None, True, False)
    assert all(isinstance(disk.policy, str) for disk in read.disks.values())
    # what is kept as it was said was read strictly: `strict_json` lets no infinite number in
    json.dumps(read.as_json(), allow_nan=name in ("plan", "view", "second"))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b", "x" * 251])
def test_a_trials_name_that_leads_elsewhere_has_no_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no name of a folder"):
        RunLayout(folder=tmp_path).evidence_of(name)


def test_a_trials_folder_and_its_run_know_each_other(tmp_path: Path) -> None:
    layout = RunLayout(folder=tmp_path / "run")
    assert RunLayout.of_evidence(layout.evidence_of("trial")) == layout


# A disk of results that is full takes no verdict away, and gives no better one.


def no_room(*_: object, **__: object) -> None:
    """The error of every write to a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_loss_stays_one_without_room_for_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = SimpleNamespace(verdict=Verdict.CORRUPTED)
    monkeypatch.setattr(scoring, "write_manifest", no_room)
    monkeypatch.setattr(scoring, "score", lambda _folder, **_timings: lost)
    assert scoring.score_with_manifest(tmp_path, timings={}) is cast("Any", lost)


def test_a_manifest_that_was_due_and_not_written_is_a_complaint(tmp_path: Path) -> None:
    [complaint] = check_manifest(tmp_path, {MANIFEST_DUE: True}).complaints
    assert "cannot be read" in complaint


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

"""A manifest says what there was, and the cell what there has to be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import EVERYTHING, MIXED, OLD, evidence, tool, without
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import LEDGER, PROOF, TOOLS, Evidence, Step
from torture.facts.evidence.manifest import (
    MANIFEST,
    MANIFEST_DUE,
    ManifestFinding,
    check_manifest,
    write_manifest,
)
from torture.oracles.verdict.guarantee import Verdict
from torture.records.scoring.judge import judge, missing_evidence

DUE = {MANIFEST_DUE: True}
_IN_THE_END = (
    Step.POOL_SYNC, Step.POOL_BLOCKS, Step.NAS_DMESG, Step.CHECK_DMESG,
    Step.FS_FIRST_CHECK, Step.CLIENT_DMESG, Step.CLIENT_UMOUNT,
)  # fmt: skip


def whole(**changes: object) -> Evidence:
    """Evidence that has all that a cell of btrfs, with a client that lives, has to have."""
    outputs = [tool(step, "kernel/log-replayed", exit_code=0) for step in _IN_THE_END]
    blocks = tool(Step.POOL_BLOCKS, "zdb/sound")
    check = tool(Step.FS_FIRST_CHECK, "btrfs/clean")
    made = evidence(*(o for o in outputs if o.step not in (blocks.step, check.step)), blocks, check)
    made = replace(
        made, documents=frozenset({PROOF, LEDGER}), manifest=ManifestFinding(is_due=True)
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def missing(made: Evidence) -> tuple[str, ...]:
    """The missing evidence of a cut of its cell."""
    return missing_evidence(made, Cell.parse(made.spec["cell"]), is_replay=False)


def test_evidence_that_has_all_lacks_nothing() -> None:
    assert missing(whole()) == ()
    assert judge(whole()).verdict is Verdict.INTACT


@pytest.mark.parametrize("step", _IN_THE_END)
def test_a_tool_that_was_not_run_vouches_for_nothing(step: Step) -> None:
    lacking = without(whole(), step)
    assert any(str(step) in said for said in missing(lacking))
    assert judge(lacking).verdict is Verdict.INCONCLUSIVE
    old = replace(lacking, manifest=ManifestFinding())
    assert missing(old) == (), "older versions are judged as before"


@pytest.mark.parametrize("step", [Step.NAS_DMESG, Step.CHECK_DMESG, Step.CLIENT_DMESG])
@pytest.mark.parametrize("code", [None, 1])
def test_a_kernel_log_that_was_not_read_to_its_end_vouches_for_nothing(
    step: Step, code: int | None
) -> None:
    made = whole()
    hung = tuple(
        replace(output, exit_code=code) if output.step == step else output for output in made.tools
    )
    lacking = replace(made, tools=hung)
    assert any(" failed (exit" in said for said in missing(lacking))
    assert judge(lacking).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("name", [PROOF, LEDGER])
def test_a_document_that_is_not_there_is_missing(name: str) -> None:
    lacking = whole(documents=frozenset({PROOF, LEDGER} - {name}))
    assert f"{name} is missing" in missing(lacking)


def test_a_loss_stays_one_when_anything_is_missing() -> None:
    lost = replace(whole(), readbacks=evidence(found=MIXED).readbacks)
    judgement = judge(without(lost, Step.NAS_DMESG))
    assert judgement.verdict is Verdict.CORRUPTED
    assert any("nas-dmesg" in reason for reason in judgement.reasons)


def test_the_verdict_in_the_manifest_is_the_least() -> None:
    written = ManifestFinding(is_due=True, complaints=("cut.json is missing",), verdict="pool-lost")
    assert judge(whole(manifest=written)).verdict is Verdict.POOL_LOST
    intact = replace(written, verdict="intact")
    assert judge(whole(manifest=intact)).verdict is Verdict.INCONCLUSIVE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spec.json").write_text(json.dumps(DUE))
    (tmp_path / "cut.json").write_text("{}")
    (tmp_path / TOOLS).write_text('{"step": "pool-import"}\n{"step": "nas-dmesg"}\n')
    write_manifest(tmp_path, verdict="intact")
    return tmp_path


def test_a_folder_as_it_was_written_has_no_complaint(folder: Path) -> None:
    assert check_manifest(folder, DUE) == ManifestFinding(is_due=True, verdict="intact")
    assert check_manifest(folder, {}) == ManifestFinding(), "none is due"


def test_every_change_is_reported(folder: Path) -> None:
    (folder / "cut.json").unlink()
    (folder / "outage.json").write_text("{}")
    (folder / TOOLS).write_text('{"step": "pool-import"}\n')
    assert check_manifest(folder, DUE).complaints == (
        "cut.json is missing",
        "outage.json is not in manifest.json",
        "tools.jsonl has changed since it was written",
        "tools.jsonl: nas-dmesg is gone",
    )


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"schema": 2}', '{"files": 3}'])
def test_a_manifest_that_cannot_be_read_is_a_complaint(folder: Path, content: str | None) -> None:
    (folder / MANIFEST).unlink() if content is None else (folder / MANIFEST).write_text(content)
    [complaint] = check_manifest(folder, DUE).complaints
    assert complaint.startswith("manifest.json cannot be read")


# A trial whose settings are not those of its cell vouches for nothing, and excuses nothing.


@pytest.mark.parametrize(
    ("found", "verdict"), [(EVERYTHING, Verdict.INCONCLUSIVE), (OLD, Verdict.ROLLED_BACK)]
)
def test_a_trial_with_another_setting_vouches_for_nothing_and_excuses_nothing(
    found: str, verdict: Verdict
) -> None:
    sound = evidence(found=found)
    other = structs.replace(sound.cut, not_in_effect=("at the end: export: async, not sync",))
    judgement = judge(replace(sound, cut=other))
    assert judgement.verdict is verdict
    assert any("export: async, not sync" in reason for reason in judgement.reasons)

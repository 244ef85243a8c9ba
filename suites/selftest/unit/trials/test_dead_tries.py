"""A trial whose worker dies is begun again, in an empty folder, unless its evidence says something."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.fake_workers import ASKED, FakeSite, campaign_of, play, specs_of
from suites.selftest.unit.good_evidence import RECORDED
from torture.choices.matrix.cells import Cell
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import CUT, SPEC, TOOLS, Step
from torture.facts.evidence.manifest import MANIFEST
from torture.facts.linux.kernels import Kernels
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.campaign.campaign import DeadTries

DIED = HarnessError("a worker died of SIGKILL", hint="read w0.log")
ROLLED_BACK = "rolled-back.iscsi-disabled-noslog-btrfs-bothdie.0000-f6704eece112861c"
REPAIRED = "repaired.iscsi-always-lost-ext4-bothdie.0000-4f1a0a2f9eee5c8b"
UNREPAIRABLE = "unrepairable.iscsi-standard-noslog-nocacheflush-xfs-bothdie.0001-6bacd376bb27f342"
INTACT = "intact.iscsi-always-noslog-snapshot-ext4-bothdie.0000-2ffecc458185c68b"


@pytest.fixture
def left(tmp_path: Path) -> Callable[[str], TrialSpec]:
    """Puts the evidence of a real trial into the run, as its worker left it."""

    def put(recorded: str) -> TrialSpec:
        folder = tmp_path / "unpacked"
        with zipfile.ZipFile(RECORDED / "evidence" / f"{recorded}.zip") as packed:
            packed.extractall(folder)
        spec = TrialSpec.from_json(strict_json((folder / SPEC).read_bytes()))
        (tmp_path / "trials").mkdir(exist_ok=True)
        folder.rename(tmp_path / "trials" / spec.trial)
        return spec

    return put


def tries_in(folder: Path) -> DeadTries:
    return DeadTries(RunLayout(folder=folder), zfs="2.3.9", linux=Kernels(nas="6.1", client="6.12"))


def test_a_loss_that_a_dead_try_shows_stands(
    tmp_path: Path, left: Callable[[str], TrialSpec]
) -> None:
    spec = left(ROLLED_BACK)
    (tmp_path / "trials" / spec.trial / MANIFEST).unlink()
    record = tries_in(tmp_path).record_after(spec, DIED)
    assert record is not None
    assert record.verdict is Verdict.ROLLED_BACK
    assert record.lost > 0
    assert record.dead_tries == 1
    assert "at least that, its try ended early: a worker died of SIGKILL" in record.reasons


@pytest.mark.parametrize(
    ("recorded", "last"),
    [(REPAIRED, None), (UNREPAIRABLE, Step.FS_MOUNT), (UNREPAIRABLE, Step.FS_CHECK)],
)
def test_damage_that_a_dead_try_shows_stands(
    tmp_path: Path, left: Callable[[str], TrialSpec], recorded: str, last: Step | None
) -> None:
    """A client's failed writer, a refused mount: whatever the try would still have found."""
    spec = left(recorded)
    folder = tmp_path / "trials" / spec.trial
    (folder / MANIFEST).unlink()
    lines = (folder / TOOLS).read_bytes().splitlines(keepends=True)
    steps = [strict_json(line)["step"] for line in lines]
    if last is not None:
        (folder / TOOLS).write_bytes(b"".join(lines[: steps.index(last) + 1]))
    record = tries_in(tmp_path).record_after(spec, DIED)
    assert record is not None
    assert record.verdict.is_damage
    assert folder.exists()


def test_a_dead_try_that_was_complete_stands(
    tmp_path: Path, left: Callable[[str], TrialSpec]
) -> None:
    """Its worker died after the manifest and before the record: nothing is left to find out."""
    record = tries_in(tmp_path).record_after(left(INTACT), DIED)
    assert record is not None
    assert record.verdict is Verdict.INTACT


def test_a_dead_try_without_a_manifest_vouches_for_nothing(
    tmp_path: Path, left: Callable[[str], TrialSpec]
) -> None:
    spec = left(INTACT)
    folder = tmp_path / "trials" / spec.trial
    (folder / MANIFEST).unlink()
    assert tries_in(tmp_path).record_after(spec, DIED) is None
    assert not folder.exists()


def test_a_breach_that_the_audit_of_a_dead_try_found_stands(
    tmp_path: Path, left: Callable[[str], TrialSpec]
) -> None:
    """Without a read-back it is inconclusive; another try might not meet that moment again."""
    spec = left(INTACT)
    folder = tmp_path / "trials" / spec.trial
    (folder / MANIFEST).unlink()
    cut = strict_json((folder / CUT).read_bytes())
    cut["audit"] |= {"broken": 1, "findings": ["log-chain at event 7: a block was not there"]}
    (folder / CUT).write_text(json.dumps(cut))
    record = tries_in(tmp_path).record_after(spec, DIED)
    assert record is not None
    assert record.is_breach
    assert folder.exists()


def test_a_third_dead_try_is_the_last(tmp_path: Path) -> None:
    tries, [spec] = tries_in(tmp_path), specs_of(ASKED, trials=1)
    assert tries.record_after(spec, DIED) is None
    assert tries.record_after(spec, DIED) is None
    record = tries.record_after(spec, DIED)
    assert record is not None
    assert record.verdict is Verdict.INCONCLUSIVE
    assert record.dead_tries == 3


def test_a_trial_that_took_too_long_is_not_begun_again(tmp_path: Path) -> None:
    [spec] = specs_of(ASKED, trials=1)
    record = tries_in(tmp_path).record_after(spec, DeadlineExceeded("the worker took too long"))
    assert record is not None
    assert record.machinery_failed


def test_a_second_try_gets_an_empty_folder_and_counts_the_first(tmp_path: Path) -> None:
    [spec] = specs_of(ASKED, trials=1)
    folder = tmp_path / "trials" / spec.trial
    outcomes = iter("DD.")

    def leave_a_file(_spec: TrialSpec) -> None:
        folder.mkdir(parents=True)  # raises where an earlier try's folder is still there
        (folder / "ledger.jsonl").write_text("{}\n")

    site = FakeSite(outcome=lambda _spec: next(outcomes), before_trial=leave_a_file)
    [record] = play(campaign_of(tmp_path, FixedSchedule([spec]), site, jobs=1), ASKED)
    assert record.verdict is Verdict.INTACT
    assert record.dead_tries == 2
    assert len(site.controllers) == 3


def test_evidence_of_an_interrupted_run_is_judged_before_its_trial_begins_again(
    tmp_path: Path, left: Callable[[str], TrialSpec]
) -> None:
    lost = left(ROLLED_BACK)
    other = replace(specs_of(Cell.parse(lost.cell.name), trials=1)[0], index=7)
    half_done = tmp_path / "trials" / other.trial
    half_done.mkdir()
    (half_done / SPEC).write_text("{}")
    begun: list[bool] = []
    site = FakeSite(before_trial=lambda spec: begun.append((half_done / SPEC).exists()))
    records = play(campaign_of(tmp_path, FixedSchedule([lost, other]), site, jobs=1), lost.cell)
    assert [record.verdict for record in records] == [Verdict.ROLLED_BACK, Verdict.INTACT]
    assert [record.dead_tries for record in records] == [1, 1]
    assert begun == [False]
    assert site.begun == [other]

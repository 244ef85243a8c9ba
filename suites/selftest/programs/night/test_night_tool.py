"""`tools/night` as it is typed: what it plans, what it says of shards that came back, or did not."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import tool
from suites.selftest.unit.made_records import changed, trial_record
from suites.selftest.unit.night.night_plans import CELLS, SEED, TRIALS, names_of, plan_of
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.shards import Shard
from torture.features.night.plan import Plan
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.trials.plan.draw import draw_trials

Verdicts = Callable[[TrialSpec], Verdict]


def night(
    *arguments: str | Path, code: int = 0, **variables: str | Path
) -> subprocess.CompletedProcess[str]:
    quiet = {
        name: value
        for name, value in os.environ.items()
        if name not in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    }
    environment = quiet | {name: str(value) for name, value in variables.items()}
    return tool("night", *arguments, code=code, environment=environment)


def outputs_in(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_plan_is_printed() -> None:
    done = night("plan", "--matrix", "quick", "--shards", "4", "--trials", "9", "--seed", "5")
    outputs = outputs_in(done.stdout)
    assert json.loads(outputs["shards"]) == ["1/4", "2/4", "3/4", "4/4"]
    assert (outputs["count"], outputs["trials"], outputs["seed"]) == ("4", "9", "5")


def test_hosts_take_turns_at_the_shards() -> None:
    hosts = ("--host", "debian:12", "--host", "debian:13")
    outputs = outputs_in(night("plan", "--matrix", "quick", "--shards", "3", *hosts).stdout)
    assert json.loads(outputs["shards"]) == [
        {"shard": "1/3", "host": "debian:12"},
        {"shard": "2/3", "host": "debian:13"},
        {"shard": "3/3", "host": "debian:12"},
    ]
    assert outputs["count"] == "3"


def test_there_are_no_more_shards_than_cells() -> None:
    outputs = outputs_in(night("plan", "--matrix", "quick", "--shards", "12").stdout)
    assert outputs["count"] == "10"
    assert len(json.loads(outputs["shards"])) == 10


def test_a_plan_is_written_to_the_cis_file(tmp_path: Path) -> None:
    file = tmp_path / "outputs"
    file.write_text("before=1\n")
    done = night("plan", "--shards", "2", "--seed", "3", GITHUB_OUTPUT=file)
    assert done.stdout == ""
    assert outputs_in(file.read_text())["before"] == "1"
    assert outputs_in(file.read_text())["seed"] == "3"


@pytest.mark.parametrize("shards", ["0", "-3", "many"])
def test_a_plan_of_no_shards_is_refused(shards: str) -> None:
    night("plan", "--shards", shards, code=2)


def well(_spec: TrialSpec) -> Verdict:
    return Verdict.INTACT


def play(
    folder: Path, plan: Plan, *, verdicts: Verdicts = well, without: int = 0, attempt: str = ""
) -> Path:
    """Leave the shards' runs as a CI does, but for one that never came."""
    for shard in plan.all_shards:
        if shard.number != without:
            place = folder / f"night-{shard.number}{attempt}" / "20260729-012300-abcd"
            leave(place, plan, shard, verdicts)
    return folder


def leave(run: Path, plan: Plan, shard: Shard, verdicts: Verdicts) -> None:
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"run": run.name, "seed": plan.seed, "options": {}}))
    cells = sorted(shard.share_of(plan.cells))
    for spec in draw_trials(cells, trials=plan.trials, run_seed=plan.seed, load_ms=4000):
        append_record(run / TRIALS_FILE, record_of(spec, verdicts(spec)))


def record_of(spec: TrialSpec, verdict: Verdict) -> TrialRecord:
    record = trial_record(
        trial=spec.trial,
        cell=spec.cell.name,
        axes=spec.cell.axes,
        seed=spec.seed,
        verdict=verdict,
        guarantee=guarantee_of(spec.cell),
        acknowledged=100,
        lost=0,
        verdicts={"pool": "intact", "filesystem": str(verdict), "data": "intact"},
        timings={"load": 4000},
    )
    return changed(record, lost=7) if verdict.is_loss else record


def merge(
    folder: Path, plan: Plan, artifacts: Path, *more: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    return night(
        "merge", artifacts, "--matrix", "quick", "--shards", str(plan.shards),
        "--trials", str(plan.trials), "--seed", str(plan.seed), "--last", folder / "last",
        "--output", folder / "site", "--remember", *more,
        code=code, GITHUB_OUTPUT=folder / "outputs", GITHUB_STEP_SUMMARY=folder / "summary",
    )  # fmt: skip


def trials_in(run: Path) -> list[str]:
    return [json.loads(line)["trial"] for line in (run / TRIALS_FILE).read_text().splitlines()]


def test_a_first_night_is_merged_and_remembered(tmp_path: Path) -> None:
    plan = plan_of(3)
    merge(tmp_path, plan, play(tmp_path / "artifacts", plan))
    assert "first night" in (tmp_path / "summary").read_text()
    page = Path(outputs_in((tmp_path / "outputs").read_text())["page"])
    assert "<html" in page.read_text()
    assert (tmp_path / "site" / "index.html").read_bytes() == page.read_bytes()
    whole = names_of(CELLS, trials=TRIALS, seed=SEED)
    for run in (tmp_path / "site" / "run", tmp_path / "last"):
        assert sorted(trials_in(run)) == sorted(whole), "not the run that was not split"


def test_the_next_night_is_compared(tmp_path: Path) -> None:
    first, second = plan_of(3), plan_of(3, seed=SEED + 1)
    merge(tmp_path, first, play(tmp_path / "first", first))
    done = merge(tmp_path, second, play(tmp_path / "second", second))
    assert "first night" not in done.stdout
    assert "The baseline is the night of " in done.stdout
    assert set(trials_in(tmp_path / "last")) == names_of(CELLS, trials=TRIALS, seed=SEED + 1)


def test_a_night_that_got_worse_fails_and_has_its_page(tmp_path: Path) -> None:
    worse = CELLS[0]

    def lossy(spec: TrialSpec) -> Verdict:
        return Verdict.UNREPAIRABLE if spec.cell == worse else Verdict.INTACT

    first, second = plan_of(3), plan_of(3, seed=SEED + 1)
    merge(tmp_path, first, play(tmp_path / "first", first))
    (tmp_path / "outputs").unlink()
    merge(tmp_path, second, play(tmp_path / "second", second, verdicts=lossy), code=1)
    assert worse.name in (tmp_path / "summary").read_text()
    assert "page" in outputs_in((tmp_path / "outputs").read_text())


def test_a_worse_night_that_is_merged_again_is_worse_again(tmp_path: Path) -> None:
    """And is no baseline for the next one, until someone accepts it."""
    first, second = plan_of(3), plan_of(3, seed=SEED + 1)
    merge(tmp_path, first, play(tmp_path / "first", first))
    artifacts = play(tmp_path / "second", second, verdicts=rolls_back)
    for _ in range(2):
        done = merge(tmp_path, second, artifacts, code=1)
        assert "baseline stays" in done.stdout
    assert set(trials_in(tmp_path / "last")) == names_of(CELLS, trials=TRIALS, seed=SEED)
    merge(tmp_path, second, artifacts, "--accept", code=1)
    assert set(trials_in(tmp_path / "last")) == names_of(CELLS, trials=TRIALS, seed=SEED + 1)


def rolls_back(_spec: TrialSpec) -> Verdict:
    return Verdict.CORRUPTED


def test_a_night_that_is_merged_again_meets_the_night_before_it(tmp_path: Path) -> None:
    first, second = plan_of(3), plan_of(3, seed=SEED + 1)
    merge(tmp_path, first, play(tmp_path / "first", first))
    merge(tmp_path, second, play(tmp_path / "second", second))
    retried = play(tmp_path / "second", second, verdicts=rolls_back, attempt="-2")
    done = merge(tmp_path, second, retried, code=1)
    assert "first night" not in done.stdout


def test_a_night_with_a_missing_shard_is_no_baseline(tmp_path: Path) -> None:
    plan = plan_of(3)
    done = merge(tmp_path, plan, play(tmp_path / "artifacts", plan, without=2), "--accept", code=1)
    assert "no baseline" in done.stdout
    assert not (tmp_path / "last").exists()


def test_a_night_of_which_nothing_is_known_fails(tmp_path: Path) -> None:
    """Whatever lost data in it may have hidden so; the first night, too, which is compared with none."""
    plan = plan_of(3)
    artifacts = play(tmp_path / "artifacts", plan, verdicts=lambda _spec: Verdict.INCONCLUSIVE)
    merge(tmp_path, plan, artifacts, code=1)
    summary = (tmp_path / "summary").read_text()
    assert f"**No conclusive trial of {min(cell.name for cell in CELLS)}" in summary


def test_a_missing_shard_is_reported_and_fails(tmp_path: Path) -> None:
    plan = plan_of(3)
    done = merge(tmp_path, plan, play(tmp_path / "artifacts", plan, without=2), code=1)
    assert "shard 2/3 is missing" in (tmp_path / "summary").read_text()
    assert "shard 1/3" not in done.stdout
    assert (tmp_path / "site" / "index.html").exists()


def test_a_last_night_that_cannot_be_read_fails_once(tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "rubbish").write_text("x")
    plan = plan_of(3)
    artifacts = play(tmp_path / "artifacts", plan)
    merge(tmp_path, plan, artifacts, code=1)
    assert "cannot be read" in (tmp_path / "summary").read_text()
    merge(tmp_path, plan, artifacts)


def test_a_night_without_a_single_trial_cannot_be_merged(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    merge(tmp_path, plan_of(3), tmp_path / "artifacts", code=2)
    assert not (tmp_path / "site").exists()

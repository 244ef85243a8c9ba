"""A second cut, after the client has lived on: which trials have one, and what is judged of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence, tool, without
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import SPEC, Evidence, Step, ToolOutput
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.records.scoring.judge import judge
from torture.trials.plan.trial_plan import SecondCut, TrialPlan, draw_plan, draw_second_cut, plan_of

_SEEDS = range(2000)
_DISKS = [ShelfDisk(serial="data0", size_mib=1, persistence=Persistence.VOLATILE)]
_SECOND = CutDocument(t_ms=9000.0, log_seq=1234)
AGAIN = tool(Step.POOL_IMPORT_AGAIN, "zpool/import-ok")


def _drawn(seed: int) -> SecondCut | None:
    return draw_second_cut(_DISKS, seed=seed, survive_ms=4000, draw=3)


def _spec(cell: str, seed: int) -> TrialSpec:
    return TrialSpec(cell=Cell.parse(cell), index=0, seed=seed, load_ms=4000)


def test_a_quarter_of_the_seeds_draws_one_within_the_clients_life() -> None:
    cuts = [cut for seed in _SEEDS if (cut := _drawn(seed)) is not None]
    # four standard deviations of 2000 draws at 0.25
    assert len(cuts) / len(_SEEDS) == pytest.approx(0.25, abs=0.039)
    assert all(1000 <= cut.after_ms <= 4000 for cut in cuts)
    assert len({cut.seed for cut in cuts}) == len(cuts)
    assert len({cut.survivors["data0"].policy for cut in cuts}) == 6


def test_only_a_client_that_lives_is_cut_again_and_its_survivors_are_drawn_anew() -> None:
    lives, dies = "iscsi-always-noslog-btrfs-nasonly", "iscsi-always-noslog-btrfs-bothdie"
    assert all(draw_plan(_spec(dies, seed)).second is None for seed in range(100))
    plans = [plan for seed in range(400) if (plan := draw_plan(_spec(lives, seed))).second]
    assert len(plans) > 60
    assert any(plan.second.survivors != plan.survivors for plan in plans if plan.second)
    assert all(
        plan.second.survivors.keys() == plan.survivors.keys() for plan in plans if plan.second
    )


def test_a_client_that_dies_later_outlives_the_nas_by_seconds_that_its_plan_keeps() -> None:
    later = _spec("iscsi-always-noslog-btrfs-clientlater", 1)
    plans = [draw_plan(replace(later, seed=seed)) for seed in range(400)]
    outlived_ms = [plan.client_outlives_ms or 0.0 for plan in plans]
    assert 2000 <= min(outlived_ms) < 2500
    assert 11500 < max(outlived_ms) <= 12000
    assert all(plan.second is None for plan in plans)
    assert TrialPlan.from_json(json.loads(json.dumps(plans[0].as_json()))) == plans[0]
    for fate in ("bothdie", "nasonly"):
        plan = draw_plan(_spec(f"iscsi-always-noslog-btrfs-{fate}", 1))
        assert plan.client_outlives_ms is None
        assert "client_outlives_ms" not in plan.as_json()
        assert TrialPlan.from_json(plan.as_json()) == plan


def test_a_plan_says_so_and_an_older_one_has_none(tmp_path: Path) -> None:
    spec = _spec("iscsi-always-noslog-btrfs-nasonly", next(seed for seed in _SEEDS if _drawn(seed)))
    plan = draw_plan(spec)
    stored = json.loads(json.dumps(plan.as_json()))
    assert plan.second is not None
    assert TrialPlan.from_json(stored) == plan
    older = {name: value for name, value in stored.items() if name != "second"}
    assert TrialPlan.from_json(older) == structs.replace(plan, second=None)
    (tmp_path / SPEC).write_text(json.dumps({"plan": older}))
    rerun = replace(spec, origin=Origin.RERUN, repeats="first", replay_of=str(tmp_path))
    assert plan_of(rerun).second is None


def test_the_cut_document_keeps_it() -> None:
    document = CutDocument(t_ms=1.0, second=_SECOND)
    assert CutDocument.from_json(json.loads(json.dumps(document.as_json()))) == document
    assert "second" not in CutDocument(t_ms=1.0).as_json()


def _cut_again(*tools: ToolOutput) -> Evidence:
    return evidence(*tools, cut=CutDocument(second=_SECOND))


def test_a_pool_has_to_come_back_both_times() -> None:
    assert judge_pool(_cut_again(AGAIN)).verdict is Verdict.INTACT
    refused = tool(Step.POOL_IMPORT_AGAIN, "zpool/import-missing-log")
    without_log = tool(Step.POOL_IMPORT_M_AGAIN, "zpool/import-without-log")
    finding = judge_pool(_cut_again(refused, without_log))
    assert finding.verdict is Verdict.REPAIRED
    assert "needed -m" in finding.summary
    rewound = (
        tool(Step.POOL_IMPORT_AGAIN, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_M_AGAIN, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_REWIND_AGAIN, "zpool/import-rewound"),
    )
    assert judge_pool(_cut_again(*rewound)).verdict is Verdict.ROLLED_BACK
    hopeless = (*rewound[:2], tool(Step.POOL_IMPORT_REWIND_AGAIN, "zpool/import-hopeless"))
    assert judge(_cut_again(*hopeless)).verdict is Verdict.POOL_LOST


def test_the_import_that_the_first_return_needed_is_not_forgotten() -> None:
    first = (
        tool(Step.POOL_IMPORT, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_M, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_REWIND, "zpool/import-rewound"),
    )
    assert judge_pool(_cut_again(*first, AGAIN)).verdict is Verdict.ROLLED_BACK


def test_an_unobserved_second_return_makes_the_trial_inconclusive() -> None:
    assert judge_pool(_cut_again()).unknown == ("pool-import-again was never tried",)
    assert judge(_cut_again()).verdict is Verdict.INCONCLUSIVE
    replayed = _cut_again()
    replayed = replace(replayed, spec=replayed.spec | {"origin": "replay"})
    assert judge(replayed).pool is Verdict.INTACT


def test_a_pool_that_was_lost_at_the_first_cut_needs_no_second_one() -> None:
    lost = evidence(
        tool(Step.POOL_IMPORT, "zpool/import-hopeless"),
        tool(Step.POOL_IMPORT_M, "zpool/import-hopeless"),
        tool(Step.POOL_IMPORT_REWIND, "zpool/import-hopeless"),
    )
    assert judge(without(lost, Step.FS_MOUNT)).verdict is Verdict.POOL_LOST

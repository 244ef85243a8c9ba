"""A pool that is short of a disk: no damage when the trial took the disk away, else it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import SCRUB, evidence, tool
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.oracles.verdict.verdicts import Verdict

_SHORT = "zpool/status-short-of-a-leg"


def _evidence(cut: CutDocument, **status_text: str) -> Evidence:
    status = tool(Step.POOL_STATUS, _SHORT)
    for old, new in status_text.items():
        assert old in status.stdout
        status = replace(status, stdout=status.stdout.replace(old, new))
    made = evidence()
    kept = tuple(output for output in made.tools if output.step != Step.POOL_STATUS)
    assert SCRUB in kept
    return replace(made, tools=(*kept, status), cut=cut)


def _gone(*policies: str) -> CutDocument:
    disks = {f"slog{at}": {"policy": policy} for at, policy in enumerate(policies)}
    return CutDocument.from_json({"disks": disks})


def test_a_removed_leg_is_no_damage_and_is_reported() -> None:
    finding = judge_pool(_evidence(_gone("gone", "all")))
    assert (finding.verdict, finding.reasons) == (Verdict.INTACT, ())
    assert "DEGRADED" in finding.summary


@pytest.mark.parametrize(
    "cut", [CutDocument(), _gone("all", "torn")], ids=["old-record", "none-gone"]
)
def test_a_missing_leg_that_was_not_removed_is_damage(cut: CutDocument) -> None:
    assert judge_pool(_evidence(cut)).verdict is Verdict.REPAIRED


@pytest.mark.parametrize("state", ["FAULTED", "SUSPENDED"])
def test_a_device_in_another_state_is_damage_though_one_was_taken_away(state: str) -> None:
    finding = judge_pool(_evidence(_gone("gone", "all"), CANT_OPEN=state))
    assert finding.verdict is Verdict.REPAIRED

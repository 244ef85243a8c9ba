"""A trial whose settings are not those of its cell vouches for nothing, and excuses nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.good_evidence import EVERYTHING, OLD, evidence
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge


@pytest.mark.parametrize(
    ("found", "verdict"), [(EVERYTHING, Verdict.INCONCLUSIVE), (OLD, Verdict.ROLLED_BACK)]
)
def test_a_trial_with_another_setting_vouches_for_nothing_and_excuses_nothing(
    found: str, verdict: Verdict
) -> None:
    sound = evidence(found=found)
    other = replace(sound.cut, not_in_effect=("at the end: export: async, not sync",))
    judgement = judge(replace(sound, cut=other))
    assert judgement.verdict is verdict
    assert any("export: async, not sync" in reason for reason in judgement.reasons)

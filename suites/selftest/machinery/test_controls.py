"""The rig proves itself: a cell that must lose is seen to lose, a safe one stays clean, warm and cold."""

from __future__ import annotations

import pytest

from suites.selftest.machinery.controls import SAFE, UNSAFE, Controls, records_of
from torture.lab.lab import Boot
from torture.verdict.verdicts import Verdict


@pytest.mark.parametrize("boot", list(Boot))
def test_a_safe_cell_stays_clean(controls: Controls, boot: Boot) -> None:
    [record] = records_of(controls.campaign(boot), SAFE[boot])
    assert record.verdict is Verdict.INTACT


@pytest.mark.parametrize("boot", list(Boot))
def test_a_cell_that_must_lose_is_seen_to_lose(controls: Controls, boot: Boot) -> None:
    """One intact trial is allowed: a transaction group may end after the last acknowledgement.

    That was seen once in 130 trials; twice in a row it is the rig that sees nothing.
    """
    campaign = controls.campaign_that_lost(UNSAFE[boot], boot=boot)
    [record] = records_of(campaign, UNSAFE[boot])
    assert record.verdict.is_loss

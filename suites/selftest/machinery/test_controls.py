"""The rig proves itself: a cell that must lose is seen to lose, a safe one stays clean, warm and cold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from torture.campaign.campaign import Campaign, EvidencePolicy
from torture.campaign.run import Run
from torture.lab.lab import Boot, LabSettings
from torture.lab.saved_states import warm_directory
from torture.matrix.cells import Cell
from torture.plan.draw import draw_trials
from torture.schedules.fixed import FixedSchedule
from torture.verdict.verdicts import Verdict
from torture.workers.local import LocalSite
from torture.workers.protocol import WorkerOrders

_SAFE = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
_UNSAFE = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
_DEADLINE_S = 400
_LOAD_MS = 4000


Begin = Callable[..., Campaign]
"""Starts a campaign of one trial of each of these cells: `begin(boot, cells, run_seed=1)`."""


@pytest.fixture(scope="module")
def begin(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    results = tmp_path_factory.mktemp("results")
    with ExitStack() as stack:

        def begun(boot: Boot, cells: Sequence[Cell], *, run_seed: int) -> Campaign:
            lab = LabSettings(boot=boot, warm_states=warm_directory())
            scratch = vm_scratch / f"{boot}{run_seed}"
            scratch.mkdir()
            run = Run.begin(results=results, seed=run_seed, lab=lab, options={})
            specs = draw_trials(cells, trials=1, run_seed=run_seed, load_ms=_LOAD_MS)
            campaign = Campaign(
                run=run,
                schedule=FixedSchedule(specs),
                site=LocalSite(WorkerOrders(scratch=scratch, evidence=run.evidence, lab=lab)),
                jobs=1,
                keep=EvidencePolicy.ALL,
            )
            stack.callback(campaign.stop)
            campaign.start()
            return campaign

        yield begun


@pytest.fixture(scope="module")
def campaigns(begin: Begin) -> dict[Boot, Campaign]:
    """The same trials, with machines resumed and with machines booted for real, side by side."""
    return {boot: begin(boot, [_SAFE, _UNSAFE], run_seed=1) for boot in Boot}


def _verdict(campaign: Campaign, cell: Cell) -> Verdict:
    assert campaign.wait_for(cell, timeout_s=_DEADLINE_S), "the trial did not end"
    [record] = campaign.records_of(cell)
    assert record.error is None, record.error
    return record.verdict


@pytest.mark.parametrize("boot", list(Boot))
def test_a_safe_cell_stays_clean(campaigns: dict[Boot, Campaign], boot: Boot) -> None:
    assert _verdict(campaigns[boot], _SAFE) is Verdict.INTACT


@pytest.mark.parametrize("boot", list(Boot))
def test_a_cell_that_must_lose_is_seen_to_lose(
    campaigns: dict[Boot, Campaign], begin: Begin, boot: Boot
) -> None:
    """One intact trial is allowed: a transaction group may end after the last acknowledgement.

    That was seen once in 130 trials; twice in a row it is the rig that sees nothing.
    """
    verdict = _verdict(campaigns[boot], _UNSAFE)
    if verdict is Verdict.INTACT:
        verdict = _verdict(begin(boot, [_UNSAFE], run_seed=2), _UNSAFE)
    assert verdict.is_loss

"""The rig proves itself: a cell that must lose is seen to lose, a safe one stays clean, warm and cold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from torture.campaign.draw import draw_trials
from torture.campaign.executor import Campaign, Keep
from torture.campaign.run import Run
from torture.lab.lab import Boot, LabSettings
from torture.lab.warm import warm_directory
from torture.matrix.cells import Cell
from torture.matrix.verdicts import Verdict

_SAFE = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
_UNSAFE = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
_DEADLINE_S = 400
_LOAD_MS = 4000


@pytest.fixture(scope="module")
def campaigns(
    vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Boot, Campaign]]:
    """The same trials, with machines resumed and with machines booted for real, side by side."""
    specs = draw_trials([_SAFE, _UNSAFE], trials=1, run_seed=1, load_ms=_LOAD_MS)
    results = tmp_path_factory.mktemp("results")
    with ExitStack() as stack:
        campaigns = {}
        for boot in Boot:
            lab = LabSettings(boot=boot, warm_states=warm_directory())
            campaigns[boot] = Campaign(
                run=Run.begin(results=results, seed=1, lab=lab, options={}),
                specs=specs,
                jobs=1,
                keep=Keep.ALL,
                lab=lab,
                scratch=vm_scratch / boot,
            )
            (vm_scratch / boot).mkdir()
            stack.callback(campaigns[boot].stop)
            campaigns[boot].start()
        yield campaigns


def _verdict(campaign: Campaign, cell: Cell) -> Verdict:
    assert campaign.wait_for(cell, timeout_s=_DEADLINE_S), "the trial did not end"
    [record] = campaign.records_of(cell)
    assert record.error is None, record.error
    return record.verdict


@pytest.mark.parametrize("boot", list(Boot))
def test_a_safe_cell_stays_clean(campaigns: dict[Boot, Campaign], boot: Boot) -> None:
    assert _verdict(campaigns[boot], _SAFE) is Verdict.INTACT


@pytest.mark.parametrize("boot", list(Boot))
def test_a_cell_that_must_lose_is_seen_to_lose(campaigns: dict[Boot, Campaign], boot: Boot) -> None:
    assert _verdict(campaigns[boot], _UNSAFE).is_loss

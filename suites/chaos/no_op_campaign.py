"""The process of a campaign of trials without machines: `FOLDER ADDRESS TRIALS SEED`."""

from __future__ import annotations

import sys
from pathlib import Path

from suites.selftest.programs.fleet.stand_in_campaign import StandInCampaign
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.records.record.specs import TrialSpec
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.plan.draw import draw_trials

_LOAD_MS = 500
_DEADLINE_S = 1800


def specs_of(*, trials: int, seed: int) -> tuple[TrialSpec, ...]:
    """So many trials of each cell of the quick matrix."""
    return draw_trials(cells_of(Matrix.QUICK), trials=trials, run_seed=seed, load_ms=_LOAD_MS)


def main(folder: Path, address: str, *, trials: int, seed: int) -> None:
    """Begin the campaign, or go on with it; raises `HarnessError` if the run cannot go on."""
    schedule = FixedSchedule(specs_of(trials=trials, seed=seed))
    begun = StandInCampaign(folder, address=address, schedule=schedule)
    try:
        for cell in cells_of(Matrix.QUICK):
            assert begun.campaign.wait_for(cell, timeout_s=_DEADLINE_S), cell.name
    finally:
        begun.campaign.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], trials=int(sys.argv[3]), seed=int(sys.argv[4]))

"""The runs of known bugs, one for each side, and their table."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fixtures.options import Options
from fixtures.plugin import TERMINAL, begun_campaign
from fixtures.trees import chosen_trees, zfs_of_side
from suites.knownbugs.table import bug_table
from torture.campaign.progress import Progress
from torture.errors import HarnessError
from torture.files import write_whole
from torture.images.source_trees import ChosenZfs
from torture.knownbugs.protocol import KnownBug, Side
from torture.plan.draw import draw_trials
from torture.record.trials import TrialRecord
from torture.schedules.fixed import FixedSchedule
from torture.scoring.bug_outcome import BugOutcome

_TABLE_FILE = "knownbugs.json"
_WIDTH = 200
_POLL_S = 1.0
_TRIAL_DEADLINE_S = 1200

_outcomes_key = pytest.StashKey[list[BugOutcome]]()
_folders_key = pytest.StashKey[list[Path]]()

Try = Callable[[KnownBug, Side, ChosenZfs], tuple[TrialRecord, ...]]


@pytest.fixture(scope="session")
def trees(request: pytest.FixtureRequest) -> dict[str, ChosenZfs]:
    """The source trees of `--tree`."""
    return chosen_trees(request.config)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> list[BugOutcome]:
    """What was found of each bug, for the table."""
    return request.config.stash.setdefault(_outcomes_key, [])


@pytest.fixture(scope="session")
def cut_side(request: pytest.FixtureRequest, options: Options) -> Try:
    """Cuts of one side, in a run of its own: `--trials` of them, or as many as were predicted."""

    def run(bug: KnownBug, side: Side, zfs: ChosenZfs) -> tuple[TrialRecord, ...]:
        asked = request.config.getoption("--trials")
        cell, cuts = side.chosen_cell, bug.cuts if asked is None else options.trials
        specs = draw_trials([cell], trials=cuts, run_seed=options.seed, load_ms=options.load_ms)
        schedule = FixedSchedule(
            tuple(replace(spec, flush_is_doubted=bug.drops_flushes) for spec in specs)
        )
        mine = replace(
            options,
            matrix=None,
            cells=(cell,),
            trials=cuts,
            lab=replace(options.lab, zfs=zfs.version),
            zfs_tree=zfs.tree,
        )
        with begun_campaign(request.config, mine, schedule, moves_latest=False) as campaign:
            request.config.stash.setdefault(_folders_key, []).append(campaign.run.folder)
            watched = Progress(campaign, Console(file=TERMINAL))
            end = time.monotonic() + _TRIAL_DEADLINE_S * cuts
            with watched.shown():
                while time.monotonic() < end:
                    watched.beat()
                    try:
                        if campaign.wait_for(cell, timeout_s=_POLL_S):
                            return campaign.records
                    except HarnessError as error:
                        pytest.fail(f"the run cannot go on: {error}", pytrace=False)
        pytest.fail(f"the trials of {bug.name} did not end", pytrace=False)

    return run


def zfs_or_skip(side: Side, trees: dict[str, ChosenZfs]) -> ChosenZfs:
    """The version that a side needs; the test is skipped, with the next step, where it cannot be had."""
    zfs = zfs_of_side(side, trees)
    if isinstance(zfs, str):
        pytest.skip(zfs)
    return zfs


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, and where it and its runs are kept."""
    outcomes = terminalreporter.config.stash.get(_outcomes_key, [])
    folders = terminalreporter.config.stash.get(_folders_key, [])
    if not outcomes:
        return
    terminalreporter.section("known bugs")
    console = Console(file=io.StringIO(), width=_WIDTH)
    with console.capture() as capture:
        console.print(bug_table(outcomes))
    terminalreporter.write(capture.get())
    kept = {
        "runs": [folder.name for folder in folders],
        "bugs": [outcome.as_json() for outcome in outcomes],
    }
    write_whole(folders[-1] / _TABLE_FILE, (json.dumps(kept, indent=1) + "\n").encode())
    terminalreporter.write_line(f"kept: {folders[-1] / _TABLE_FILE}")

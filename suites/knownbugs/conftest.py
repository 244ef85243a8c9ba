"""The runs of known bugs, one for each side, and their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.campaigns import print_table, run_alone
from fixtures.options import Options, refuse_options
from fixtures.states import WALK_OPTIONS
from fixtures.trees import chosen_trees
from suites.knownbugs.table import bug_table
from torture.checkout import CHECKOUT
from torture.choices.knownbugs.protocol import KnownBug, Side
from torture.facts.linux.kernels import DEFAULT, Kernels, choose_kernels
from torture.facts.zfs.versions import zfs_version
from torture.machines.images.sources.patches import PatchSeries
from torture.machines.images.sources.zfs_trees import ChosenZfs
from torture.records.record.trials import TrialRecord
from torture.records.scoring.bug_outcome import BugOutcome
from torture.trials.plan.draw import draw_trials

_TABLE_FILE = "knownbugs.json"
CutSide = Callable[[KnownBug, Side, ChosenZfs], tuple[TrialRecord, ...]]

_outcomes_key = pytest.StashKey[list[BugOutcome]]()
_folders_key = pytest.StashKey[list[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    """Each bug has its cells and its versions."""
    refuse_options(
        config, "--cell", "--matrix", "--axis", "--property", "--tunable", "--shard", "--until",
        "--schedule", "--zfs", "--linux", "--linux-nas", "--linux-client", *WALK_OPTIONS,
    )  # fmt: skip


@pytest.fixture(scope="session")
def trees(request: pytest.FixtureRequest) -> dict[str, ChosenZfs]:
    """The source trees of `--tree`."""
    return chosen_trees(request.config)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> list[BugOutcome]:
    """The findings of each bug, for the table."""
    return request.config.stash.setdefault(_outcomes_key, [])


@pytest.fixture(scope="session")
def cut(request: pytest.FixtureRequest, options: Options) -> CutSide:
    """Cuts of one side, in a run of its own: `--trials`, or as many as the bug's prediction says."""
    folders = request.config.stash.setdefault(_folders_key, [])

    def run(bug: KnownBug, side: Side, zfs: ChosenZfs) -> tuple[TrialRecord, ...]:
        cuts = bug.cuts if request.config.getoption("--trials") is None else options.trials
        specs = draw_trials(
            [side.chosen_cell], trials=cuts, run_seed=options.seed, load_ms=options.load_ms
        )
        its_own, records = run_alone(request.config, _of_side(options, side, zfs), specs, zfs)
        folders.append(its_own.folder)
        return records

    return run


def _of_side(options: Options, side: Side, zfs: ChosenZfs) -> Options:
    patches, linux = patched_kernels(side, zfs.version)
    if not patches.texts:
        return options
    return replace(options, patches=patches, lab=replace(options.lab, linux=linux))


def patched_kernels(side: Side, zfs: str) -> tuple[PatchSeries, Kernels]:
    """A side's patches, and the kernels of its machines; raises `HarnessError` for unreadable ones."""
    names = side.nas_patches or side.client_patches
    patches, version = PatchSeries.read([CHECKOUT / name for name in names]), zfs_version(zfs)
    nas, client = (version.suite, None) if side.nas_patches else (None, DEFAULT)
    return patches, choose_kernels(
        version, both=None, nas=nas, client=client, patches=patches.digest
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, and where it is kept with the names of its runs."""
    outcomes = terminalreporter.config.stash.get(_outcomes_key, [])
    if not outcomes:
        return
    folders = terminalreporter.config.stash[_folders_key]
    kept = {
        "runs": [folder.name for folder in folders],
        "bugs": [outcome.as_json() for outcome in outcomes],
    }
    table, file = bug_table(outcomes), folders[-1] / _TABLE_FILE
    print_table(terminalreporter, "known bugs", table, kept=kept, file=file)

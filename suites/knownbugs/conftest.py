"""The runs of known bugs, one for each side, and their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fixtures.campaigns import run_alone
from fixtures.experiments import outcomes, print_outcomes, runs_key
from fixtures.options import LOAD, RUNNING, TREES, TRIALS, Options, take_options
from fixtures.trees import chosen_trees
from torture.choices.experiments.protocol import KnownBug, Side
from torture.facts.linux.kernels import DEFAULT, Kernels, choose_kernels
from torture.facts.zfs.versions import zfs_version
from torture.files import CHECKOUT
from torture.machines.images.source_trees import ChosenSource, PatchSeries
from torture.records.record.trials import TrialRecord
from torture.trials.plan.draw import draw_trials

__all__ = ["outcomes"]
CutSide = Callable[[KnownBug, Side, ChosenSource], tuple[TrialRecord, ...]]


def pytest_configure(config: pytest.Config) -> None:
    """Each bug has its cells and its versions."""
    take_options(config, TREES, TRIALS, LOAD, RUNNING)


@pytest.fixture(scope="session")
def trees(request: pytest.FixtureRequest) -> dict[str, ChosenSource]:
    """The source trees of `--tree`."""
    return chosen_trees(request.config)


@pytest.fixture(scope="session")
def cut(request: pytest.FixtureRequest, options: Options) -> CutSide:
    """Cuts of one side, in a run of its own: `--trials`, or as many as the bug's prediction says."""
    runs = request.config.stash.setdefault(runs_key, [])

    def run(bug: KnownBug, side: Side, zfs: ChosenSource) -> tuple[TrialRecord, ...]:
        cuts = bug.cuts if request.config.getoption("--trials") is None else options.trials
        specs = draw_trials(
            [side.chosen_cell], trials=cuts, run_seed=options.seed, load_ms=options.load_ms
        )
        its_own, records = run_alone(request.config, _of_side(options, side, zfs), specs, zfs)
        runs.append(its_own)
        return records

    return run


def _of_side(options: Options, side: Side, zfs: ChosenSource) -> Options:
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
    print_outcomes(terminalreporter, "known bugs", of="bugs", file="knownbugs.json")

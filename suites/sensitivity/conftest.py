"""The campaign of planted faults, and its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from fixtures.campaigns import Running, begun_campaign, run_alone, selected
from fixtures.cells import why_out_of_reach
from fixtures.early_options import asked_choices
from fixtures.experiments import outcomes, print_outcomes, runs_key
from fixtures.option_groups import feature_groups
from fixtures.options import CHOICES, LOAD, RUNNING, TRIALS, VERSIONS, Options, take_options
from torture.choices.experiments import DISTURBANCES, FAULTS, ZFS_BUGS, ZFS_DISTURBANCES
from torture.choices.experiments.protocol import Fault
from torture.choices.matrix.cells import Cell
from torture.machines.images.source_trees import choose_zfs
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.records.tasks.core_tasks import Cut
from torture.records.tasks.protocol import Task
from torture.trials.plan.draw import draw_planted, moved

__all__ = ["outcomes"]
_IN_ONE_RUN = {"fault": FAULTS, "disturbance": DISTURBANCES}
_PLANTED = _IN_ONE_RUN | {"zfs_bug": ZFS_BUGS, "zfs_disturbance": ZFS_DISTURBANCES}
"""The argument of a test to the faults that it is run with."""
RunAlone = Callable[[Fault], tuple[TrialRecord, ...]]


def pytest_configure(config: pytest.Config) -> None:
    """Each fault has its cell, and its own number of cuts."""
    take_options(config, CHOICES, VERSIONS, TRIALS, LOAD, RUNNING, *feature_groups())


@pytest.fixture(scope="session")
def planted(request: pytest.FixtureRequest, options: Options) -> Iterator[Running]:
    """The trials of all selected faults, running from its first use on."""
    faults = selected(request.session, Fault, *_IN_ONE_RUN, needing="planted")
    specs = _specs_of(faults, request.config, options)
    schedule = FixedSchedule(specs)
    with begun_campaign(
        request.config, options, schedule, specs=specs, moves_latest=False
    ) as running:
        request.config.stash.setdefault(runs_key, []).append(running.campaign.run)
        yield running


@pytest.fixture(scope="session")
def planted_alone(request: pytest.FixtureRequest, options: Options) -> RunAlone:
    """Runs the trials of a change that is planted in ZFS."""

    def run(change: Fault) -> tuple[TrialRecord, ...]:
        specs = _specs_of([change], request.config, options)
        its_own, records = run_alone(request.config, options, specs, choose_zfs(change.zfs))
        request.config.stash.setdefault(runs_key, []).append(its_own)
        return records

    return run


def _specs_of(
    faults: Sequence[Fault], config: pytest.Config, options: Options
) -> tuple[TrialSpec, ...]:
    def task_of(cell: Cell) -> Task:
        asked = (group.task_of(config, cell) for group in feature_groups())
        return next(filter(None, asked), Cut())

    return draw_planted(
        faults,
        trials=options.trials,
        run_seed=options.seed,
        load_ms=options.load_ms,
        task_of=task_of,
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each fault, and each disturbance, where `--axis` puts it; skipped where it cannot be there."""
    for argument, there_are in _PLANTED.items():
        if argument in metafunc.fixturenames:
            placed = [_placed(fault, metafunc.config) for fault in there_are.values()]
            metafunc.parametrize(argument, placed)


def _placed(fault: Fault, config: pytest.Config) -> Any:
    try:
        there = moved(fault, asked_choices(config.getoption))
        why = why_out_of_reach(Cell.parse(there.cell), config)
    except ValueError as error:
        there, why = fault, str(error)
    marks = [pytest.mark.skip(reason=why)] if why else []
    return pytest.param(there, id=fault.name, marks=marks)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, and where it is kept with the versions it was measured with."""
    print_outcomes(terminalreporter, "sensitivity", of="faults", file="sensitivity.json")

"""The runs of known bugs, one for each side, and their table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fixtures.options import Options, refuse_options
from fixtures.trees import chosen_trees
from suites.knownbugs.runs import CutSide, cut_side
from suites.knownbugs.table import bug_table
from torture.choices.knownbugs.protocol import KnownBug, Side
from torture.files import write_whole
from torture.machines.images.source_trees import ChosenZfs
from torture.records.record.trials import TrialRecord
from torture.records.scoring.bug_outcome import BugOutcome

_TABLE_FILE = "knownbugs.json"
_WIDTH = 200

_outcomes_key = pytest.StashKey[list[BugOutcome]]()
_folders_key = pytest.StashKey[list[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    """Each bug has its cells and its versions of ZFS."""
    refuse_options(
        config, "--cell", "--matrix", "--axis", "--shard", "--until", "--schedule", "--zfs"
    )


@pytest.fixture(scope="session")
def trees(request: pytest.FixtureRequest) -> dict[str, ChosenZfs]:
    """The source trees of `--tree`."""
    return chosen_trees(request.config)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> list[BugOutcome]:
    """What was found of each bug, for the table."""
    return request.config.stash.setdefault(_outcomes_key, [])


@pytest.fixture(scope="session")
def cut(request: pytest.FixtureRequest, options: Options) -> CutSide:
    """Cuts of one side, in a run of its own."""
    folders = request.config.stash.setdefault(_folders_key, [])

    def run(bug: KnownBug, side: Side, zfs: ChosenZfs) -> tuple[TrialRecord, ...]:
        folder, records = cut_side(request.config, options, bug, side, zfs)
        folders.append(folder)
        return records

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, and where it is kept with the names of its runs."""
    outcomes = terminalreporter.config.stash.get(_outcomes_key, [])
    if not outcomes:
        return
    terminalreporter.section("known bugs")
    console = Console(file=io.StringIO(), width=_WIDTH)
    with console.capture() as capture:
        console.print(bug_table(outcomes))
    terminalreporter.write(capture.get())
    folders = terminalreporter.config.stash[_folders_key]
    kept = {
        "runs": [folder.name for folder in folders],
        "bugs": [outcome.as_json() for outcome in outcomes],
    }
    write_whole(folders[-1] / _TABLE_FILE, (json.dumps(kept, indent=1) + "\n").encode())
    terminalreporter.write_line(f"kept: {folders[-1] / _TABLE_FILE}")

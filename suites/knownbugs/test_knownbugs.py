"""Known bugs: each must be found in its affected cell and version, and not in its cleared ones.

`--trials` sets the number of cuts of each side; the default is the predicted number. A bug fails
its test in three cases (`torture/choices/experiments/`):
- no cut of the affected side shows it
- another check sees it than was predicted before the first search
- any check sees anything on the cleared side, this bug or another
"""

from __future__ import annotations

import pytest

from fixtures.cells import why_out_of_reach
from fixtures.trees import zfs_of_side
from suites.knownbugs.conftest import CutSide
from torture.choices.experiments import KNOWN_BUGS
from torture.choices.experiments.protocol import KnownBug, Side
from torture.machines.images.source_trees import ChosenSource
from torture.records.scoring.detection import Outcome, detect


@pytest.mark.parametrize("bug", KNOWN_BUGS.values(), ids=lambda bug: bug.name)
def test_a_known_bug_is_found_where_it_is_and_only_there(
    bug: KnownBug,
    cut: CutSide,
    trees: dict[str, ChosenSource],
    outcomes: list[Outcome],
    pytestconfig: pytest.Config,
) -> None:
    sides = (bug.affected, bug.cleared)
    versions = [_zfs_or_skip(side, trees, pytestconfig) for side in sides]
    affected, cleared = (
        detect(bug, cut(bug, side, zfs), side) for side, zfs in zip(sides, versions, strict=True)
    )
    outcome = Outcome(experiment=bug, affected=affected, cleared=cleared)
    outcomes.append(outcome)
    assert not outcome.objection, outcome.objection


def _zfs_or_skip(side: Side, trees: dict[str, ChosenSource], config: pytest.Config) -> ChosenSource:
    """The version that a side needs; skips the test where that or its network is missing."""
    if why := why_out_of_reach(side.chosen_cell, config):
        pytest.skip(f"{side.chosen_cell.name}: {why}")
    zfs = zfs_of_side(side, trees)
    if isinstance(zfs, str):
        pytest.skip(zfs)
    return zfs

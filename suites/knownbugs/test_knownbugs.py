"""Known bugs: each found in the cell and version that has it, and not in those that have not.

`--trials` says how many cuts each side gets; as many as were predicted without it. A bug fails its test
when no cut of the affected side shows it, when it is not seen as was predicted before it was first looked
for, or when anything at all is seen of the cleared side (`torture/knownbugs/`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.options import why_out_of_reach
from suites.knownbugs.conftest import zfs_or_skip
from torture.knownbugs import KNOWN_BUGS
from torture.knownbugs.protocol import KnownBug
from torture.scoring.bug_outcome import BugOutcome, side_outcome

if TYPE_CHECKING:
    from suites.knownbugs.conftest import Try
    from torture.images.source_trees import ChosenZfs


@pytest.mark.parametrize("bug", KNOWN_BUGS.values(), ids=lambda bug: bug.name)
def test_a_known_bug_is_found_where_it_is_and_only_there(
    bug: KnownBug,
    cut_side: Try,
    trees: dict[str, ChosenZfs],
    outcomes: list[BugOutcome],
    request: pytest.FixtureRequest,
) -> None:
    sides = (bug.affected, bug.cleared)
    for side in sides:
        if why := why_out_of_reach(side.chosen_cell, request.config):
            pytest.skip(f"{side.chosen_cell.name}: {why}")
    versions = [zfs_or_skip(side, trees) for side in sides]
    affected, cleared = (
        side_outcome(side, cut_side(bug, side, zfs))
        for side, zfs in zip(sides, versions, strict=True)
    )
    outcome = BugOutcome(bug=bug, affected=affected, cleared=cleared)
    outcomes.append(outcome)
    assert outcome.is_found, f"not seen in {affected.cuts} cuts; {affected.errors}"
    assert outcome.is_as_predicted, f"seen by {affected.seen_in_words}, {affected.rate_in_words}"
    assert outcome.is_clear, f"{cleared.rate_in_words}, {cleared.seen_in_words}; {cleared.errors}"

"""Power that goes again amid a recovery: a walk recovers these states, too, and nothing is lost.

The seed is fixed, as the outcome is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.campaigns import begun_beside
from fixtures.options import Options
from torture.choices.matrix.cells import Cell
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.draws import draw_walked
from torture.features.walk.tasks import Walk
from torture.oracles.verdict.guarantee import Verdict

_CELL = Cell.parse("iscsi-always-noslog-throughput-raw-bothdie")
"""Its log has the addresses of blocks, and no data, so that no state has a torn sector."""
_STATES = 10
"""Of ten states three are of cuts amid the recovery."""
_LOAD_MS = 2500


@pytest.fixture(scope="module")
def walk(request: pytest.FixtureRequest, options: Options) -> Iterator[WalkDocument]:
    """The walk of one recording."""
    specs = draw_walked(
        [_CELL],
        recordings=1,
        walk=Walk(states=_STATES, engine=WalkEngine.NATIVE),
        run_seed=1,
        load_ms=_LOAD_MS,
    )
    with begun_beside(request.config, options, specs) as running:
        running.wait_for(_CELL)
        (record,) = running.campaign.records_of(_CELL)
        assert record.error is None, record.error
        walk = record.part(WalkDocument)
        assert walk is not None
        assert record.verdict is Verdict.INTACT, record.reasons
        yield walk


def test_each_state_of_a_safe_recording_is_intact(walk: WalkDocument) -> None:
    assert walk.outcomes == {Verdict.INTACT: _STATES}, walk.unknown
    assert walk.losses == ()
    assert (walk.differing, walk.proofs_differing, walk.fresh_differing) == (0, 0, 0)


def test_power_goes_again_three_times_amid_the_recovery(walk: WalkDocument) -> None:
    assert (walk.depth, walk.amid_recovery, walk.fresh) == (4, 3, 3)

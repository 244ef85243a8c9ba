"""The crash states of a recording: each that is recovered must keep its cell's guarantee.

`--trials` sets the recordings of each cell, `--states` the states of each recording. The states are
recovered by the kernel's ZFS in one NAS that stays up. With `--engine native` OpenZFS's library on
the host recovers them, or proves them equal to a recovered one. The kernel's ZFS recovers each state
that lost something there. Such a state is
recovered once more by a fresh NAS, over the cell's own transport, and the trial has that verdict.
"""

from __future__ import annotations

from fixtures.campaigns import Running
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import guarantee_of
from torture.records.record.trials import needing_attention


def test_every_recovered_state_keeps_the_guarantee(cell: Cell, walked: Running) -> None:
    walked.wait_for(cell)
    records = walked.campaign.records_of(cell)
    assert not needing_attention(records), [record.error for record in records]
    broken = [record for record in records if record.breaks(guarantee_of(cell))]
    assert not broken, [(record.trial, record.reasons) for record in broken]
    walks = [record.walk for record in records if record.walk is not None]
    assert walks, "no recording was walked"
    assert all(walk.recovered for walk in walks), "no state was recovered"
    assert not any(walk.differing for walk in walks), "a second recovery gave another content"
    assert not any(walk.proofs_differing for walk in walks), "a proven state gave another content"
    assert not any(walk.fresh_differing for walk in walks), (
        "a fresh NAS gave another verdict or health"
    )
    assert not any(walk.disagreeing for walk in walks), "the engines gave different ends"

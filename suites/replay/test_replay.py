"""The crash states of a recording: each that is recovered must keep its cell's guarantee.

`--trials` sets the recordings of each cell, `--states` the states of each recording. The states are
recovered by the kernel's ZFS in one NAS that stays up. With `--engine native` OpenZFS's library on
the host recovers them, or proves them equal to a recovered one. The kernel's ZFS recovers each state
that lost something there, and drawn ones that did not. A loss by either engine is one. A state with a
loss is recovered once more by a fresh NAS, over the cell's own transport, and the trial has that
verdict. A difference between two recoveries makes the trial inconclusive.
"""

from __future__ import annotations

from fixtures.campaigns import Running
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell


def test_every_recovered_state_keeps_the_guarantee(cell: Cell, walked: Running) -> None:
    walked.wait_for(cell)
    records = walked.campaign.records_of(cell)
    unknown = [record.error for record in records if not record.is_conclusive]
    assert not unknown, unknown
    broken = [record for record in records if record.breaks(guarantee_of(cell))]
    assert not broken, [(record.trial, record.reasons) for record in broken]

"""What of the audit a cell breaks by its own settings: it is counted, and no finding against ZFS."""

from __future__ import annotations

from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.matrix.cells import Cell
from torture.facts.axes.module_parameters import ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH
from torture.oracles.audit.invariants import Invariant

_ABOUT_THE_LOG = frozenset(
    {
        Invariant.ACKNOWLEDGED_IS_DURABLE,
        Invariant.RETURNED_IS_DURABLE,
        Invariant.LOG_CHAIN_IS_WHOLE,
        Invariant.COMPLETED_IS_DURABLE,
    }
)
_ABOUT_FLUSHES = _ABOUT_THE_LOG | {
    Invariant.TXG_IS_DURABLE,
    Invariant.UBERBLOCK_IS_DURABLE,
    Invariant.LABELS_TAKE_TURNS,
}


def waived_in(cell: Cell, *, issued_seq: int) -> dict[Invariant, int]:
    """The invariants that rest on flushes which ZFS is told not to make, or that administration breaks.

    Each with the event of the log from which on it is waived: `issued_seq` is that before the command of
    the administration. What was lost is held against the cell's guarantee, as ever; and what rests on no
    flush, against ZFS.
    """
    administration = cell[ADMINISTRATION]
    own = frozenset[Invariant]() if administration is None else administration.waived
    return dict.fromkeys(own, issued_seq) | dict.fromkeys(_of_flushes(cell), 0)


def _of_flushes(cell: Cell) -> frozenset[Invariant]:
    if cell[ZFS_NOCACHEFLUSH]:
        return _ABOUT_FLUSHES
    return _ABOUT_THE_LOG if cell[ZIL_NOCACHEFLUSH] else frozenset()

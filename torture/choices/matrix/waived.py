"""The invariants of the audit that a cell breaks by its own settings.

The audit counts them, and they are no finding against ZFS.
"""

from __future__ import annotations

from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.matrix.cells import Cell
from torture.facts.axes.setting import ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH
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
    """The invariants that need flushes that ZFS is set not to send, or that administration breaks.

    Each has the recording's event from which on it is waived. `issued_seq` is the event before the
    administration's command. Losses count against the cell's guarantee, as in any cell. Invariants
    that need no flush count against ZFS.
    """
    administration = cell[ADMINISTRATION]
    own = frozenset[Invariant]() if administration is None else administration.waived
    return dict.fromkeys(own, issued_seq) | dict.fromkeys(_of_flushes(cell), 0)


def _of_flushes(cell: Cell) -> frozenset[Invariant]:
    if cell[ZFS_NOCACHEFLUSH]:
        return _ABOUT_FLUSHES
    return _ABOUT_THE_LOG if cell[ZIL_NOCACHEFLUSH] else frozenset()

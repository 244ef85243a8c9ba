"""The invariants of the audit that a cell breaks by its own settings.

The audit counts them, and they are no finding against ZFS.
"""

from __future__ import annotations

from torture.choices.matrix.axes import ADMINISTRATION, SETTINGS
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
    """The invariants that ZFS is set to break, by missing flushes or late groups, or administration.

    Each has the recording's event from which on it is waived. `issued_seq` is the event before the
    administration's command. Losses count against the cell's guarantee, as in any cell. Invariants
    that need no flush count against ZFS.
    """
    administration = cell[ADMINISTRATION]
    own = frozenset[Invariant]() if administration is None else administration.waived
    return dict.fromkeys(own, issued_seq) | dict.fromkeys(_of_flushes(cell) | _of_groups(cell), 0)


def _of_groups(cell: Cell) -> frozenset[Invariant]:
    """A transaction group is in time by ZFS's own `zfs_txg_timeout`, of 5 s (zfs(4))."""
    is_set = "zfs_txg_timeout" in cell[SETTINGS].tunables
    return frozenset({Invariant.TXG_IS_IN_TIME}) if is_set else frozenset()


def _of_flushes(cell: Cell) -> frozenset[Invariant]:
    if cell[ZFS_NOCACHEFLUSH]:
        return _ABOUT_FLUSHES
    return _ABOUT_THE_LOG if cell[ZIL_NOCACHEFLUSH] else frozenset()

"""The terms of a cell, for its loads and oracles."""

from __future__ import annotations

from torture.choices.matrix.axes import FATE, TRANSPORT
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import content_is_safe_in
from torture.facts.axes.fate import Fate
from torture.oracles.verdict.terms import Terms


def terms_of(cell: Cell, *, is_replay: bool = False) -> Terms:
    """The terms of a trial of this cell."""
    traits = cell[TRANSPORT].traits
    return Terms(
        tears_sectors=traits.tears_sectors,
        names_are_stable=traits.names_are_stable,
        content_is_safe=content_is_safe_in(cell),
        repeats_requests=traits.repeats_requests,
        client_lives=cell[FATE] is Fate.NAS_ONLY,
        is_replay=is_replay,
    )

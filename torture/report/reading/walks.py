"""The walked recordings of each cell, from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_QUERY = """
SELECT
    cell,
    count(*) AS recordings,
    sum(walked_states) AS states,
    sum(walked_states_proven) AS proven,
    sum(walked_states_by_library) AS by_library,
    sum(walked_states_lost) AS lost,
    count(*) FILTER (walked_states_lost > 0) AS recordings_lost,
    coalesce(arg_max(walked_blocks, walked_blocks_run), 0) AS blocks,
    coalesce(max(walked_blocks_run), 0) AS blocks_run
FROM records WHERE walked_states > 0 GROUP BY cell
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked:
    """The crash states of a cell's walked recordings: no cuts, and in no rate."""

    recordings: int
    states: int
    proven: int
    """The states without a recovery: an earlier one has read nothing else than these states have."""
    by_library: int
    """The states whose end is the word of OpenZFS's library alone."""
    lost: int
    """The states that lost something acknowledged, or are damaged."""
    recordings_lost: int
    """The recordings with one of these states."""
    blocks: int = 0
    """The blocks of the code of ZFS's library that recovers, where they were counted."""
    blocks_run: int = 0
    """Of these, the blocks that the recoveries of one recording ran, by the one that ran most."""


def walked_by_cell(rows: Callable[[str], Sequence[Sequence[Any]]]) -> dict[str, Walked]:
    """The walks of all cells that have one; `rows` asks the store."""
    names = Walked.__dataclass_fields__
    return {cell: Walked(**dict(zip(names, of, strict=True))) for cell, *of in rows(_QUERY)}

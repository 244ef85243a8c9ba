"""The columns of a walk, of the table of trials."""

from __future__ import annotations

from collections.abc import Callable

from torture.facts.evidence.cut_document import GONE
from torture.facts.recording.disks import Persistence
from torture.features.walk.documents import WalkDocument, by_library_alone
from torture.report.reading.column import Column, Row, count, hidden


def _may_be_of_no_cut(row: Row) -> bool:
    """Whether its walk lost something in a state that perhaps no cut leaves.

    Walks of rule 0 dropped completed writes of disks with power-loss protection
    (`torture.features.walk.states.course.RULE`).
    """
    walk, disks = row.record.part(WalkDocument), row.record.cut.disks.values()
    if walk is None or walk.rule > 0 or not walk.states_lost:
        return False
    left = [disk.persistence for disk in disks if disk.policy != GONE]
    return Persistence.PLP in left or not left


def _of_walk(take: Callable[[WalkDocument], int]) -> Callable[[Row], int | None]:
    def of(row: Row) -> int | None:
        walk = row.record.part(WalkDocument)
        return None if walk is None else take(walk)

    return of


COLUMN: dict[str, Column] = {
    "walked_states": count(_of_walk(lambda walk: walk.counted)),
    "walked_states_proven": count(_of_walk(lambda walk: walk.proven)),
    "walked_states_by_library": count(_of_walk(by_library_alone)),
    "walked_states_lost": count(_of_walk(lambda walk: walk.states_lost)),
    "walked_perhaps_illegal": hidden("BOOLEAN", _may_be_of_no_cut),
    "walked_amid_recovery": hidden("BIGINT", _of_walk(lambda walk: walk.amid_recovery)),
}

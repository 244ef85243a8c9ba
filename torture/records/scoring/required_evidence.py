"""The evidence that a trial must have, by its cell and by the stage that the trial reached.

A manifest lists the evidence that existed; this lists the evidence that must exist. Missing
or garbled evidence, or a failed tool, proves nothing. Only
trials that end with a manifest need all of it: older ones left out some evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from torture.choices.matrix.axes import ADMINISTRATION, FILESYSTEM, WORKLOAD
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import with_those_beside
from torture.facts.evidence.folder import ADMINISTRATION as ADMINISTRATION_DOCUMENT
from torture.facts.evidence.folder import (
    IMPORTS,
    IMPORTS_AGAIN,
    LEDGER,
    OUTAGE,
    PROOF,
    Evidence,
    Step,
)
from torture.facts.evidence.parts import part_kinds


def missing_evidence(evidence: Evidence, cell: Cell | None, *, is_replay: bool) -> tuple[str, ...]:
    """The missing and garbled evidence, in words; empty where all is there. Older evidence lacks some.

    Without a cell it is unknown what must be there.
    """
    garbled = _garbled(evidence)
    if cell is None or not evidence.manifest.is_due:
        return garbled
    return (*garbled, *_Missing(evidence, cell, is_replay=is_replay).all())


def _garbled(evidence: Evidence) -> tuple[str, ...]:
    """The documents that are there and say nothing."""
    read = {
        OUTAGE: evidence.outage,
        **{kind.FILE: evidence.parts.get(kind.FILE) for kind in part_kinds()},
        ADMINISTRATION_DOCUMENT: evidence.administration,
    }
    named = (name for name, content in read.items() if content is None)
    return tuple(f"{name} is garbled" for name in named if name in evidence.documents)


class _Missing:
    """One trial's evidence, and the search for one thing after the other."""

    def __init__(self, evidence: Evidence, cell: Cell, *, is_replay: bool) -> None:
        self._evidence = evidence
        self._cell = cell
        self._is_replay = is_replay
        is_confirmed = evidence.cut.confirmed.is_made
        client_lives = terms_of(cell).client_lives
        self._client_lived = client_lives and not is_confirmed and not self._is_replay
        self._was_cut_again = self._client_lived and evidence.cut.second is not None
        self._came_back = self._has_imported(IMPORTS)
        if self._was_cut_again and self._came_back:
            self._came_back = self._has_imported(IMPORTS_AGAIN)

    def all(self) -> Iterator[str]:
        """Everything that is missing."""
        loads = with_those_beside(self._cell[WORKLOAD])
        ledger = [LEDGER] if any(load.keeps_ledger for load in loads) else []
        for name in (PROOF, *ledger):
            if name not in self._evidence.documents:
                yield f"{name} is missing"
        yield from self._of_administration()
        if self._evidence.outage is not None:
            return
        yield from self._of_client()
        if self._came_back:
            yield from self._of_check()
        elif self._count(Step.POOL_REFUSALS) == 0:
            yield from self._lines(Step.POOL_REFUSALS)

    def _of_check(self) -> Iterator[str]:
        """The evidence of a returned NAS, up to the end of the trial."""
        yield from self._lines(Step.POOL_SYNC)
        yield from self._lines(Step.POOL_SCRUB)
        if self._count(Step.POOL_BLOCKS_ASTIR) == 0:
            yield from self._lines(Step.POOL_BLOCKS)
        yield from self._ended_well(Step.NAS_DMESG, 2 if self._was_cut_again else 1)
        yield from self._ended_well(Step.CHECK_DMESG, 1)
        filesystem = self._cell[FILESYSTEM]
        if filesystem.has_files and filesystem.first_check is not None:
            yield from self._lines(Step.FS_FIRST_CHECK)

    def _of_client(self) -> Iterator[str]:
        """The evidence of a client that lived on, and of loads that print their findings."""
        lost_root = self._count(Step.CLIENT_LOST_ROOT) > 0
        ended = self._client_lived and not self._was_cut_again and not lost_root
        if self._client_lived and not lost_root:
            yield from self._ended_well(Step.CLIENT_DMESG, 1)
            if not self._was_cut_again:
                yield from self._lines(Step.CLIENT_UMOUNT)
        if self._is_replay:
            return
        due = sum(load.prints_due(ended=ended) for load in with_those_beside(self._cell[WORKLOAD]))
        yield from self._lines(Step.CLIENT_LOAD, due)

    def _of_administration(self) -> Iterator[str]:
        administration = self._cell[ADMINISTRATION]
        if administration is None:
            return
        if ADMINISTRATION_DOCUMENT not in self._evidence.documents:
            yield f"{ADMINISTRATION_DOCUMENT} is missing"
        if not self._came_back:
            return
        size = len(administration.questions)
        rounds = 2 if self._was_cut_again else 1
        yield from self._lines(Step.ADMINISTRATION_STATE, size * rounds)
        if self._count(Step.ADMINISTRATION_STATE) % size:
            yield f"{Step.ADMINISTRATION_STATE} is incomplete"
        if self._evidence.outage is None:
            yield from self._lines(Step.ADMINISTRATION_END, size)

    def _has_imported(self, steps: tuple[Step, ...]) -> bool:
        return any(tool.step in steps and tool.exit_code == 0 for tool in self._evidence.tools)

    def _count(self, step: Step) -> int:
        return sum(tool.step == step for tool in self._evidence.tools)

    def _lines(self, step: Step, due: int = 1) -> Iterator[str]:
        if (count := self._count(step)) < due:
            yield f"{step} was run {count} times, and has to be run {due} times"

    def _ended_well(self, step: Step, due: int) -> Iterator[str]:
        """The silence of a kernel's log proves nothing if the log was not read to its end."""
        yield from self._lines(step, due)
        outputs = (tool for tool in self._evidence.tools if tool.step == step)
        for output in outputs:
            if output.exit_code != 0:
                yield f"{step}: {output.name} failed (exit {output.exit_code})"
            elif not output.stdout.strip():
                yield f"{step}: {output.name} printed nothing"

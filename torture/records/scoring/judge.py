"""The judge composes one checker for each layer, and merges their findings by one rule.

As with Jepsen's `compose`, each checker judges alone (`checkers/checker.py`). The rule:

- The verdict is the worst of all layers. A machine that did not come back makes it at least
  unavailable; a pool that no import brings back has no filesystem and no data.
- Known damage stands as a lower bound, whatever else is unreadable, late or missing: also a mere
  repair. Where nothing bad is known, a doubt makes the trial inconclusive: anything unknown or
  missing, or a cut that could take nothing.
- Less evidence gives no better verdict: damage that the trial's manifest states stays known.

The evidence that a trial must have, by its cell and by the stage that the trial reached.

A manifest lists the evidence that existed; this lists the evidence that must exist. Missing
or garbled evidence, or a failed tool, proves nothing. Only
trials that end with a manifest need all of it: older ones left out some evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import ADMINISTRATION, FILESYSTEM, IMAGE, ROOT, WORKLOAD, Cell
from torture.choices.workloads import with_those_beside
from torture.facts.axes.hypervisor import Image
from torture.facts.axes.root import Root
from torture.facts.evidence.folder import ADMINISTRATION as ADMINISTRATION_DOCUMENT
from torture.facts.evidence.folder import (
    IMPORTS,
    IMPORTS_AGAIN,
    LEDGER,
    OUTAGE,
    PROOF,
    Evidence,
    Step,
    part_kinds,
)
from torture.oracles.verdict.guarantee import Terms, Verdict, standing, worst, worst_or_none
from torture.oracles.verdict.judgement import Judgement
from torture.oracles.verdict.repeated_requests import repeated_as_done
from torture.records.record.trials import Origin
from torture.records.scoring.checkers import (
    Checker,
    Earlier,
    Layer,
    LayerFinding,
    check_administration,
    check_data,
    check_filesystem,
    check_image,
    check_outage,
    check_pool,
)
from torture.records.tasks import left_by_task


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
        terms = terms_of(cell)
        client_lives = terms.client_lives
        self._client_lived = client_lives and not is_confirmed and not self._is_replay
        self._was_cut_again = self._client_lived and evidence.cut.second is not None
        is_up = terms.nas_lives and not is_replay
        self._came_back = is_up or self._has_imported(IMPORTS)
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
        if self._cell[IMAGE] is not Image.NONE:
            yield from self._lines(Step.IMAGE_CHECK)
            yield from self._lines(Step.IMAGE_OPEN)
            if self._is_image_lost():
                return
        filesystem = self._cell[FILESYSTEM]
        if filesystem.has_files and filesystem.first_check is not None:
            yield from self._lines(Step.FS_FIRST_CHECK)

    def _is_image_lost(self) -> bool:
        opened = self._evidence.output(Step.IMAGE_OPEN)
        return opened is not None and opened.exit_code != 0

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


_CAUSES = (Layer.ADMINISTRATION, Layer.OUTAGE)
"""Their reasons come before everything unknown, which they may explain."""
NOT_IN_EFFECT = "a setting of the cell is not in effect"
_AT_LEAST = "at least that: the evidence is incomplete"
_CONFIRMED = "cut at event {0.event}, before the drawn cut: {0.finding}"


def judge(evidence: Evidence) -> Judgement:
    """The verdict of one trial; never raises for missing evidence."""
    is_replay = evidence.spec.get("origin") == Origin.REPLAY
    cell: Cell | None = None
    try:
        cell = Cell.parse(str(evidence.spec.get("cell")))
    except ValueError as error:
        terms, checkers = Terms(is_replay=is_replay), _checkers_without_cell(str(error))
    else:
        terms, checkers = terms_of(cell, is_replay=is_replay), _checkers_of(cell)
    missing = missing_evidence(evidence, cell, is_replay=is_replay)
    if terms.repeats_requests:
        evidence = replace(evidence, ledger=repeated_as_done(evidence.ledger))
    found: dict[Layer, LayerFinding] = {}
    for check in (check_pool, check_outage, *checkers):
        finding = check(evidence, terms, found)
        found[finding.layer] = finding
    missing = (*evidence.manifest.complaints, *missing)
    return _conclude(evidence, found, missing=missing, may_be_empty=terms.ends_in_order)


def _checkers_of(cell: Cell) -> Iterator[Checker]:
    if cell[IMAGE] is not Image.NONE:
        yield check_image
    yield partial(check_filesystem, filesystem=cell[FILESYSTEM], is_root=cell[ROOT] is Root.BOOT)
    yield partial(check_data, loads=with_those_beside(cell[WORKLOAD]))
    if (administration := cell[ADMINISTRATION]) is not None:
        yield partial(check_administration, administration=administration)


def _checkers_without_cell(why: str) -> Iterator[Checker]:
    """The checkers for an unknown cell: its filesystem and its loads are unknown, too."""
    yield lambda *_: LayerFinding(layer=Layer.FILESYSTEM, unknown=(why,))
    yield partial(check_data, loads=())


def _conclude(
    evidence: Evidence, found: Earlier, *, missing: tuple[str, ...], may_be_empty: bool
) -> Judgement:
    """The only place that merges the findings into a judgement."""
    every = {layer: found.get(layer, LayerFinding(layer=layer)) for layer in Layer}
    filesystem, data = every[Layer.FILESYSTEM], every[Layer.DATA]
    known = [finding.verdict for finding in every.values() if finding.verdict is not None]
    unknown = tuple(_unknown(evidence, every.values(), known, may_be_empty=may_be_empty))
    doubts = (*missing, *unknown)
    stated = _stated(evidence) if doubts else ()
    verdict = standing([*known, *stated], doubts=doubts)
    if evidence.manifest.complaints and Verdict.INCONCLUSIVE in stated:
        verdict = Verdict.INCONCLUSIVE  # the lost evidence may be what excused it
    is_lower_bound = verdict.is_damage and doubts and evidence.outage is None
    of_nas = evidence.outage is not None and evidence.outage.of_nas
    of_pool = (Layer.POOL, Layer.ADMINISTRATION, *((Layer.OUTAGE,) if of_nas else ()))
    confirmed = evidence.cut.confirmed
    return Judgement(
        verdict=verdict,
        pool=worst_or_none(every[layer].verdict for layer in of_pool),
        image=every[Layer.IMAGE].verdict,
        filesystem=filesystem.verdict,
        findings=structs.replace(
            data.findings, reasons=(), verdict=_of_data(every, verdict, is_shown=verdict in known)
        ),
        fsck=filesystem.summary,
        pool_summary=every[Layer.POOL].summary,
        administration=every[Layer.ADMINISTRATION].summary,
        reasons=(
            *((_CONFIRMED.format(confirmed),) if confirmed.is_made else ()),
            *missing,
            *((_AT_LEAST,) if is_lower_bound else ()),
            *(why for layer in _CAUSES for why in every[layer].reasons),
            *unknown,
            *(why for layer in Layer if layer not in _CAUSES for why in every[layer].reasons),
        ),
    )


def _unknown(
    evidence: Evidence,
    every: Iterable[LayerFinding],
    known: Sequence[Verdict],
    *,
    may_be_empty: bool,
) -> Iterator[str]:
    """Why not everything is known, apart from missing evidence."""
    is_doubted = False
    for why in (
        *(f"{NOT_IN_EFFECT}: {found}" for found in evidence.cut.not_in_effect),
        *(why for finding in every for why in finding.unknown),
        *_left_open_beside(evidence, shown=worst([Verdict.INTACT, *known])),
    ):
        is_doubted = True
        yield why
    is_empty = evidence.cut.is_empty and not may_be_empty
    if is_empty and not is_doubted and not any(one.is_damage for one in known):
        stalled = ": the load had stalled" if evidence.cut.is_stalled else ""
        yield f"an empty cut: nothing could have been lost{stalled}"


def _stated(evidence: Evidence) -> tuple[Verdict, ...]:
    """The verdict of the manifest; none where it is not written yet."""
    return tuple(verdict for verdict in Verdict if verdict == evidence.manifest.verdict)


def _of_data(
    every: Mapping[Layer, LayerFinding], verdict: Verdict, *, is_shown: bool
) -> Verdict | None:
    """The verdict of the data; None where the trial lost more than its data can show any more."""
    data, filesystem = every[Layer.DATA], every[Layer.FILESYSTEM]
    is_whole = is_shown and not (
        data.unknown or filesystem.unknown or every[Layer.POOL].distrusts_disk
    )
    is_less = data.verdict is not None and not data.verdict.is_loss
    return None if verdict.is_loss and is_less and not is_whole else data.verdict


def _left_open_beside(evidence: Evidence, *, shown: Verdict) -> Iterator[str]:
    """By features; a trial that came back without the evidence that its task leaves has one less."""
    for part in evidence.parts.values():
        yield from part.left_open(shown=shown)
    due = left_by_task(evidence.spec)
    if due is not None and due.FILE not in evidence.parts and evidence.outage is None:
        yield due.LACKING

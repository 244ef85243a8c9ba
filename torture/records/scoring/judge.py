"""The judge composes one checker for each layer, and merges their findings by one rule.

As with Jepsen's `compose`, each checker judges alone (`checkers/checker.py`). The rule:

- The verdict is the worst of all layers. A machine that did not come back makes it at least
  unavailable; a pool that no import brings back has no filesystem and no data.
- Known damage stands as a lower bound, whatever else is unreadable, late or missing: also a mere
  repair. Where nothing bad is known, a doubt makes the trial inconclusive: anything unknown or
  missing, or a cut that could take nothing.
- Less evidence gives no better verdict: damage that the trial's manifest states stays known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from torture.choices.matrix.axes import ADMINISTRATION, FILESYSTEM, ROOT, WORKLOAD
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import with_those_beside
from torture.facts.axes.root import Root
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.judgement import Judgement
from torture.oracles.verdict.repeated_requests import repeated_as_done
from torture.oracles.verdict.verdicts import Verdict, standing, worst, worst_or_none
from torture.records.record.trials import Origin
from torture.records.scoring.checkers.checker import Checker, Earlier, Layer, LayerFinding
from torture.records.scoring.checkers.data_checker import check_data
from torture.records.scoring.checkers.storage_checkers import (
    check_administration,
    check_filesystem,
    check_outage,
    check_pool,
)
from torture.records.scoring.required_evidence import missing_evidence
from torture.records.tasks import left_by_task

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
    return _conclude(evidence, found, missing=(*evidence.manifest.complaints, *missing))


def _checkers_of(cell: Cell) -> Iterator[Checker]:
    yield partial(check_filesystem, filesystem=cell[FILESYSTEM], is_root=cell[ROOT] is Root.BOOT)
    yield partial(check_data, loads=with_those_beside(cell[WORKLOAD]))
    if (administration := cell[ADMINISTRATION]) is not None:
        yield partial(check_administration, administration=administration)


def _checkers_without_cell(why: str) -> Iterator[Checker]:
    """The checkers for an unknown cell: its filesystem and its loads are unknown, too."""
    yield lambda *_: LayerFinding(layer=Layer.FILESYSTEM, unknown=(why,))
    yield partial(check_data, loads=())


def _conclude(evidence: Evidence, found: Earlier, *, missing: tuple[str, ...]) -> Judgement:
    """The only place that merges the findings into a judgement."""
    every = {layer: found.get(layer, LayerFinding(layer=layer)) for layer in Layer}
    filesystem, data = every[Layer.FILESYSTEM], every[Layer.DATA]
    known = [finding.verdict for finding in every.values() if finding.verdict is not None]
    unknown = tuple(_unknown(evidence, every.values(), known))
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
    evidence: Evidence, every: Iterable[LayerFinding], known: Sequence[Verdict]
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
    if evidence.cut.is_empty and not is_doubted and not any(one.is_damage for one in known):
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

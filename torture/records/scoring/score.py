"""From a trial's folder to its record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torture.choices.matrix.cell_terms import completed_sync_of, guarantee_of
from torture.choices.matrix.cells import ADMINISTRATION
from torture.errors import HarnessError
from torture.facts.evidence.documents import document_or_none, json_object, strict_json
from torture.facts.evidence.folder import (
    PROOF,
    SPEC,
    VERIFIERS,
    AdministrationDocument,
    Evidence,
    load_evidence,
)
from torture.facts.evidence.manifest import MANIFEST_DUE, write_manifest
from torture.facts.evidence.parts import Part
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Judgement
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Advertised, TrialRecord
from torture.records.scoring.explanation import explanation_of
from torture.records.scoring.judge import judge
from torture.records.scoring.service import absence_in_words, absence_of, failed_writers, speed_of

_FLUSH_LOST = {
    "lost_by_zfs": "before the load ZFS got a flush of the client, and sent none to the log's disks",
    "lost_by_chain": "before the load the client sent a flush, and none came to ZFS",
}
"""By the words of `proof.json`."""


def score(folder: Path, *, timings: dict[str, int]) -> TrialRecord:
    """The record of the evidence in `folder`.

    Raises `HarnessError` when the folder holds no trial, or one that this version does not know.
    """
    evidence = load_evidence(folder)
    spec = _spec_in(evidence, folder)
    if not spec.task.has_cut:
        return _of_task_alone(folder, spec, evidence, timings)
    judgement = judge(evidence)
    observations = judgement.findings.observations
    findings = replace(judgement.findings, observations=())
    writers = failed_writers(evidence.ledger)
    absence = absence_of(evidence, sync=completed_sync_of(spec.cell))
    proof = _found_in(folder / PROOF)
    advertised = document_or_none(Advertised, proof.get("advertised")) or Advertised()
    flush_lost = (words for name, words in _FLUSH_LOST.items() if proof.get(name))
    remarks = (*absence_in_words(absence), *flush_lost, *_layout_in_words(spec, evidence))
    record = replace(
        _record_of(spec),
        judgement=replace(judgement, findings=findings, reasons=(*judgement.reasons, *remarks)),
        cut=evidence.cut,
        writers=writers.of,
        writers_failed=writers.count,
        speed=speed_of(evidence),
        absence=absence,
        zfs=str(evidence.spec.get("zfs", "")),
        **{part.FIELD: part for part in evidence.parts.values()},
        advertised=advertised.with_verifiers(_found_in(folder / VERIFIERS)),
        administration=_administered(spec, evidence),
        timings=timings,
        has_manifest=evidence.spec.get(MANIFEST_DUE) is True,
        error="; ".join(judgement.reasons) if judgement.verdict is Verdict.INCONCLUSIVE else None,
    )
    is_worse = record.breaks(guarantee_of(spec.cell))
    if record.verdict is not Verdict.INTACT or record.lost or is_worse:
        return replace(record, explanation=explanation_of(evidence, record, observations))
    return record


def _found_in(document: Path) -> dict[str, Any]:
    """The findings in a document of the trial; none where it is missing or not readable."""
    try:
        return json_object(document.read_bytes()) or {}
    except OSError:
        return {}


def _layout_in_words(spec: TrialSpec, evidence: Evidence) -> Iterator[str]:
    """The disks that joined the pool or left it, where no administration was asked for."""
    changes = evidence.cut.audited.layout_changes
    if changes and spec.cell[ADMINISTRATION] is None:
        yield f"the layout of the pool changed under the load: {', '.join(changes)}"


def _of_task_alone(
    folder: Path, spec: TrialSpec, evidence: Evidence, timings: dict[str, int]
) -> TrialRecord:
    """Nothing was cut, so nothing could be lost: the task's own evidence is all that there is."""
    kind = spec.task.leaves
    assert kind is not None, "a task without a cut leaves evidence of its own"
    file = folder / kind.FILE
    try:
        part = kind.from_json(strict_json(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise HarnessError(f"{file} is unreadable: {error}", hint=f"read {folder}") from error
    return uncut(spec, part, zfs=str(evidence.spec.get("zfs", "")), timings=timings)


def score_with_manifest(folder: Path, *, timings: dict[str, int]) -> TrialRecord:
    """The record of a trial that has just ended; it also writes the manifest of its evidence.

    A manifest without room on the disk is missing evidence, and takes no loss away. Raises
    `HarnessError` as `score` does.
    """
    with suppress(OSError):
        write_manifest(folder)
    record = score(folder, timings=timings)
    with suppress(OSError):
        write_manifest(folder, verdict=record.verdict)
    return record


def _spec_in(evidence: Evidence, folder: Path) -> TrialSpec:
    file = folder / SPEC
    try:
        return TrialSpec.from_json(evidence.spec)
    except KeyError as error:
        raise HarnessError(f"{file} lacks {error}", hint=f"read {file}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise HarnessError(
            f"{file} does not describe a trial: {error}", hint=f"read {file}"
        ) from error


def _administered(spec: TrialSpec, evidence: Evidence) -> AdministrationDocument | None:
    if spec.cell[ADMINISTRATION] is None:
        return None
    return evidence.administration or AdministrationDocument(
        name=spec.cell.axes[ADMINISTRATION.field]
    )


def inconclusive(spec: TrialSpec, *, zfs: str, error: str, timings: dict[str, int]) -> TrialRecord:
    """The record of a trial whose machinery failed, with this version of ZFS."""
    return replace(_record_of(spec), timings=timings, error=error, zfs=zfs, machinery_failed=True)


def uncut(spec: TrialSpec, part: Part, *, zfs: str, timings: dict[str, int]) -> TrialRecord:
    """The record of a trial without a cut."""
    return replace(
        _record_of(spec),
        judgement=Judgement(verdict=Verdict.INTACT, findings=UNJUDGED),
        **{part.FIELD: part},
        timings=timings,
        zfs=zfs,
    )


def _record_of(spec: TrialSpec) -> TrialRecord:
    """The facts about a trial that were known before it began."""
    return TrialRecord(
        trial=spec.trial,
        cell=spec.cell.name,
        axes=spec.cell.axes,
        seed=spec.seed,
        guarantee=guarantee_of(spec.cell),
        judgement=Judgement(verdict=Verdict.INCONCLUSIVE, findings=UNJUDGED),
        origin=spec.origin,
        repeats=spec.repeats,
        fault=spec.fault,
        load_ms=spec.load_ms,
        brought={brought.load: brought.sha256 for brought in spec.brought},
    )

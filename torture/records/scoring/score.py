"""From a trial's folder to its record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torture.choices.matrix.cell_terms import (
    completed_sync_of,
    guarantee_of,
    may_fail_before_cut,
    may_give_up,
)
from torture.choices.matrix.cells import ADMINISTRATION
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import document_or_none, json_object, strict_json
from torture.facts.evidence.folder import (
    PROOF,
    SPEC,
    VERIFIERS,
    AdministrationDocument,
    Evidence,
    Part,
    load_evidence,
)
from torture.facts.evidence.manifest import MANIFEST_DUE, write_manifest
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Judgement
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Advertised, TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.scoring.explanation import explanation_of
from torture.records.scoring.judge import judge
from torture.records.scoring.service import (
    absence_in_words,
    absence_of,
    failed_writers,
    speed_of,
    with_offline,
)

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
    writers = failed_writers(evidence.ledger, before_cut=may_fail_before_cut(spec.cell))
    absence = absence_of(evidence, sync=completed_sync_of(spec.cell))
    absence = with_offline(absence, evidence, writers, gives_up=may_give_up(spec.cell))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejudged:
    """Today's records; `changes` are sentences; `kept` counts records whose evidence is gone.

    A change is one of the verdict, of the breach of the guarantee, or of the audit's result.
    """

    records: tuple[TrialRecord, ...]
    changes: tuple[str, ...]
    kept: int
    unjudged: tuple[str, ...] = ()
    """The reasons, one a record, why a record with evidence that cannot be judged stays as it is."""
    unreadable_lines: int = 0
    """Lines of `trials.jsonl` that are no records, and stay there."""


def rejudge(run: Path) -> Rejudged:
    """Judge every trial of a run whose evidence is there; the others keep their record.

    A trial whose machinery failed stays inconclusive: its evidence is of a trial that never ended.
    If its `cut.json` is unreadable, a trial keeps its record's facts about the cut. Raises
    `HarnessError` when the folder holds no run.
    """
    layout = RunLayout(folder=run)
    read = read_records(layout.trials_file)
    old = read.records
    if not old:
        lines = f": {read.unreadable_lines} lines, no record" if read.unreadable_lines else ""
        raise HarnessError(f"no trials in {layout.trials_file}{lines}", hint="ls results/")
    records: list[TrialRecord] = []
    changes: list[str] = []
    unjudged: list[str] = []
    kept = 0
    for record in old:
        now = record
        try:
            folder = layout.evidence_of(record.trial)
        except ValueError as error:
            unjudged.append(str(error))
            records.append(record)
            continue
        kept += not (folder / SPEC).exists()
        if (folder / SPEC).exists() and not record.machinery_failed:
            try:
                now = _score_again(folder, record)
            except HarnessError as error:
                unjudged.append(f"{record.trial}: {error}")
        records.append(now)
        if changed := "; ".join(_changes(record, now)):
            changes.append(f"{record.trial}: {changed}")
    return Rejudged(
        records=tuple(records),
        changes=tuple(changes),
        kept=kept,
        unjudged=tuple(unjudged),
        unreadable_lines=read.unreadable_lines,
    )


def rejudge_trial(evidence: Path) -> tuple[TrialRecord | None, TrialRecord]:
    """The run's record of a trial, None where there is none, and today's record.

    A trial whose machinery failed keeps its record. Raises `HarnessError` when the folder holds no
    trial.
    """
    old = read_records(RunLayout.of_evidence(evidence).trials_file).records
    was = next((record for record in old if record.trial == evidence.resolve().name), None)
    if was is None:
        return None, score(evidence, timings={})
    return was, was if was.machinery_failed else _score_again(evidence, was)


def _score_again(evidence: Path, was: TrialRecord) -> TrialRecord:
    now = replace(
        score(evidence, timings=was.timings),
        where=was.where,
        dead_tries=was.dead_tries,
        engine_state=was.engine_state,
        scored_s=was.scored_s,
    )
    if now.cut == CutDocument():
        # the cut is unreadable now: the known facts about it stay known
        now = replace(now, cut=was.cut, absence=was.absence)
    return was if now == was else replace(now, scored_s=int(time.time()))


def _changes(was: TrialRecord, now: TrialRecord) -> Iterator[str]:
    if now.verdict is not was.verdict:
        yield f"{was.verdict} is {now.verdict} now"
    if now.is_breach is not was.is_breach:
        before, after = ("kept", "broken") if now.is_breach else ("broken", "kept")
        yield f"the guarantee that was {before} is {after} now"
    before, after = (_audit_in_words(record) for record in (was, now))
    if before != after:
        yield f"the audit, which had {before}, has {after} now"


def _audit_in_words(record: TrialRecord) -> str:
    broken = record.cut.audited.broken
    return "no result" if broken is None else f"{broken} broken"

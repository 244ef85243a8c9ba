"""A new judgement of an old run: its evidence, today's verdicts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import SPEC
from torture.records.record.run_document import RunLayout
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.scoring.score import score


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

"""One trial, from its spec to its record."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC
from torture.facts.evidence.manifest import MANIFEST_DUE
from torture.machines.lab.lab import Lab
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.scoring.score import inconclusive, score_with_manifest
from torture.trials.trial.courses import course_of
from torture.trials.trial.outage import BrokenOff
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, archive_recordings


def run_trial(
    spec: TrialSpec,
    *,
    lab: Lab,
    folder: Path,
    scratch: Path,
    enter_stage: Callable[[str], None] = lambda _stage: None,
) -> TrialRecord:
    """Run one trial, keep its evidence in `folder` and judge it.

    Never raises for a fault of the machinery: then the record is `inconclusive`, with the error.
    """
    trial = Trial.begin(spec, folder=folder, scratch=scratch, nas_host=lab.network.nas_host)
    machines = Machines(trial=trial, lab=lab)
    evidence = EvidenceWriter(folder=folder, enter_stage=enter_stage, require_host=lab.require_host)
    shelf, course = machines.shelf, course_of(spec.task)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True)
        decided = {"zfs": lab.zfs.name, "plan": trial.plan.as_json(), "loads": trial.jobs}
        evidence.write(SPEC, spec.as_json() | {MANIFEST_DUE: True} | decided)
        with closing(machines):
            lab.boot_from(**trial.images)
            course.stages(trial, machines, evidence)
            if spec.task.has_cut:
                shelf.require_healthy()
        record = score_with_manifest(folder, timings=evidence.timings)
        if not course.makes_recording:
            return record
        return archive_recordings(record, of=shelf.directory, into=folder)
    except BrokenOff as failure:
        error = str(failure)
        if (known := _known_at_least(evidence, error)) is not None:
            return archive_recordings(known, of=shelf.directory, into=folder)
    except HarnessError as failure:
        error = str(failure)
    except Exception:
        # a fault of this project must not end the other trials, nor count as the NAS's
        error = f"unexpected:\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    error += f"\n  trial: {spec.trial}, evidence: {folder}"
    return inconclusive(spec, zfs=lab.zfs.name, error=error, timings=evidence.timings)


def _known_at_least(evidence: EvidenceWriter, error: str) -> TrialRecord | None:
    """The record of a trial that broke off after it had found damage, or a broken promise."""
    try:
        record = score_with_manifest(evidence.folder, timings=evidence.timings)
    except HarnessError:
        return None
    if not record.is_conclusive and not record.is_breach:
        return None
    return record.with_reason(f"at least that, broken off: {error}")

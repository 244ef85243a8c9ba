"""A trial's instructions from its record alone: published runs hold no evidence."""

from __future__ import annotations

from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.axes import WORKLOAD
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import with_those_beside
from torture.choices.workloads.protocol import Place
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC
from torture.records.record.lines import index_in
from torture.records.record.run_document import RunDocument, read_run_document
from torture.records.record.run_layout import RunLayout
from torture.records.record.specs import DRAWS, TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.trials.plan.trial_plan import draw_plan


def evidence_in(folder: Path) -> Path:
    """The evidence that a user means: the folder itself, or the only trial of a run."""
    trials = RunLayout(folder=folder).evidence
    if (folder / SPEC).exists() or not trials.is_dir():
        return folder
    only, *others = sorted(trials.iterdir()) or [folder]
    return folder if others else only


def first_record(evidence: Path) -> TrialRecord | None:
    """The record that a trial's run has of it; None where the run is lost. `tools/judge` judges anew."""
    records = read_records(RunLayout.of_evidence(evidence).trials_file).records
    trial = evidence.resolve().name
    return next((record for record in records if record.trial == trial), None)


def spec_of_record(evidence: Path) -> TrialSpec:
    """The instructions of a trial whose evidence is gone: those that its seed draws.

    The version of the draws is the newest one whose cut is that of the record. Raises
    `HarnessError` where the record does not say enough.
    """
    record, layout = first_record(evidence), RunLayout.of_evidence(evidence)
    if record is None:
        raise HarnessError(
            f"{layout.trials_file} has no record of {evidence.name}, and its evidence is not there",
            hint=f"ls {layout.folder}",
        )
    run = read_run_document(layout.folder) or RunDocument()
    load_ms, index = run.options.get("duration_ms"), index_in(record.trial)
    if type(load_ms) is not int or index is None:
        lacks = "run.json does not have the length of its load" if index is not None else "no index"
        raise HarnessError(f"{record.trial} cannot be drawn again: {lacks}", hint=f"ls {evidence}")
    cell = _cell_of(record)
    for workload in with_those_beside(cell[WORKLOAD]):
        workload.job(seed=0, place=Place(directory=MOUNT_POINT))  # refuses without its user's file
    candidates = [
        TrialSpec(
            cell=cell,
            index=index,
            seed=record.seed,
            load_ms=load_ms,
            fault=record.fault,
            origin=record.origin,
            draw=draw,
        )
        for draw in reversed(DRAWS)
    ]
    for spec in candidates:
        if spec.trial == record.trial and draw_plan(spec).cut.as_json() == record.cut.plan:
            return spec
    raise HarnessError(
        f"{record.trial}: no version of this suite's draws has the cut of its record",
        hint=f"tools/run suites/powercut --cell {cell.name}",
    )


def _cell_of(record: TrialRecord) -> Cell:
    try:
        return Cell.parse(record.cell)
    except ValueError as error:
        raise HarnessError(
            f"{record.trial} has a cell of another version: {error}", hint="git log"
        ) from error

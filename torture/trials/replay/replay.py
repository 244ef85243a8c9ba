"""One trial again, from its evidence or from its record alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import WORKLOAD, Cell
from torture.choices.workloads import with_those_beside
from torture.choices.workloads.protocol import Place
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import SPEC
from torture.facts.linux.kernels import DEFAULT as DEFAULT_LINUX
from torture.facts.linux.kernels import Kernels
from torture.facts.zfs.versions import DEFAULT, zfs_version
from torture.machines.host.abilities import Accelerator, NetworkKind
from torture.machines.host.scratch import Scratch
from torture.machines.lab.lab import Boot, LabSettings
from torture.machines.lab.saved_states import warm_directory
from torture.records.record.run_document import RunDocument, RunLayout, read_run_document
from torture.records.record.specs import DRAWS, TrialSpec
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import index_in, read_records
from torture.records.schedules.fixed import ReplaySchedule, repeat
from torture.records.tasks.protocol import TaskOf
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy
from torture.trials.campaign.run import Run
from torture.trials.plan.trial_plan import draw_plan, plan_of
from torture.trials.trial.courses import course_of
from torture.trials.trial.loads import content_of
from torture.trials.workers.local import LocalSite
from torture.trials.workers.protocol import WorkerOrders, WorkerSite


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


def replay(
    evidence: Path,
    *,
    results: Path,
    live: bool = False,
    zfs: str = "",
    linux: str = "",
    task_of: TaskOf | None = None,
    progress: Callable[[str], None] = lambda _step: None,
    site_of: Callable[[WorkerOrders], WorkerSite] = LocalSite,
) -> tuple[TrialRecord, Path]:
    """Recover and check the disks of an evidence folder again, in a run of its own.

    The disks are those after the recorded cut, byte for byte. With `live` the trial runs again from
    its seed instead: with the same load and plan, but with times of its own. Its record suffices
    for that. `zfs`: another version for the NAS. `linux`: another kernel for both machines.
    `task_of`: another task than a replay's. It may need a build, of which `progress` gets the steps.

    Returns the record and the new evidence folder. Both have the name of the first trial, with
    their origin behind it. `results/latest` stays where it is. Raises `HarnessError` when the
    folder holds no trial, or when the new trial does not end.
    """
    spec = repeated_spec(evidence, Origin.RERUN if live else Origin.REPLAY, task_of=task_of)
    lab = settings_of(RunLayout.of_evidence(evidence).folder)
    lab = with_versions(lab, zfs=zfs, linux=linux)
    course_of(spec.task).prepare(zfs_version(lab.zfs), None, progress)
    scratch = Scratch()
    scratch.remove_abandoned()
    options = {"replay_of": spec.repeats}
    run = Run.begin(results=results, seed=spec.seed, lab=lab, options=options, moves_latest=False)
    with scratch.directory(run.scratch_name) as directory:
        orders = WorkerOrders(scratch=directory, run=run, lab=lab)
        campaign = Campaign(
            run=run,
            schedule=ReplaySchedule(spec),
            site=site_of(orders),
            jobs=1,
            keep=EvidencePolicy.ALL,
            longer_s=spec.task.longer_s,
        )
        campaign.start()
        try:
            if not campaign.wait_for(spec.cell, timeout_s=campaign.patience_s):
                raise DeadlineExceeded(f"the trial did not end within {campaign.patience_s:g} s")
        finally:
            campaign.stop()
    return campaign.records[0], run.evidence / spec.trial


def repeated_spec(evidence: Path, origin: Origin, *, task_of: TaskOf | None = None) -> TrialSpec:
    """The instructions of a trial, for that trial again; raises `HarnessError` as `replay` does."""
    if origin == Origin.RERUN and not (evidence / SPEC).exists():
        return repeat(spec_of_record(evidence), evidence=evidence.absolute(), origin=origin)
    try:
        spec = TrialSpec.from_json(strict_json((evidence / SPEC).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(
            f"{evidence} holds no trial: {error}", hint=f"read {evidence / SPEC}"
        ) from error
    if origin == Origin.REPLAY and spec.replay_of and spec.origin != Origin.RERUN:
        raise HarnessError(
            f"{evidence} is a replay itself: the recording is with the trial that it replayed",
            hint=f"tools/replay {spec.replay_of}",
        )
    task = None if task_of is None else task_of(spec.cell)
    repeated = repeat(spec, evidence=evidence.absolute(), origin=origin, task=task)
    if origin == Origin.RERUN:
        for brought in spec.brought:
            content_of(brought)
    plan_of(repeated)  # refuse an unreadable plan before anything begins
    return repeated


def with_versions(lab: LabSettings, *, zfs: str, linux: str) -> LabSettings:
    """The settings with another ZFS in the NAS, or another kernel in both machines; empty: the same."""
    return replace(lab, zfs=zfs or lab.zfs, linux=Kernels.same(linux) if linux else lab.linux)


def settings_of(folder: Path) -> LabSettings:
    """The settings of a run's machines; a trial whose run is lost gets today's defaults.

    It uses KVM and a bridge where this host has them: a probe tries these first.
    """
    run = read_run_document(folder) or RunDocument()
    zfs = run.zfs or DEFAULT
    linux = Kernels(nas=run.linux_nas, client=run.linux_client or DEFAULT_LINUX)
    try:
        accelerator, network = Accelerator(run.accelerator.kind), NetworkKind(run.network.kind)
        return LabSettings(
            boot=Boot(run.boot),
            accelerator=None if accelerator is Accelerator.KVM else accelerator,
            network=None if network is NetworkKind.BRIDGE else network,
            zfs=zfs,
            linux=linux,
            warm_states=warm_directory(),
        )
    except ValueError:
        return LabSettings(zfs=zfs, linux=linux, warm_states=warm_directory())

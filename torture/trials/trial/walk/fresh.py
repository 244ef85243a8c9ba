"""A whole recovery of a crash state, recorded: its own cuts leave further crash states."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from torture.facts.evidence.folder import CUT_STATE, SPEC, Evidence, Step, load_evidence
from torture.facts.recording.crash_state import CrashState, write_crash_state
from torture.facts.recording.events import Recording, load_recording
from torture.machines.lab.lab import Lab
from torture.oracles.verdict.pool_tools.zpool import parse_status
from torture.records.scoring.walk_verdict import PoolHealth
from torture.trials.trial.check import check
from torture.trials.trial.recovery import bring_nas_back, observe_status
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class FreshRecovery:
    """The evidence of a fresh NAS and a client, and the recording of the NAS's disks."""

    evidence: Evidence
    recording: Recording
    is_imported: bool
    health: PoolHealth | None
    """The pool's; None where it was not imported."""


def recover_afresh(trial: Trial, lab: Lab, state: CrashState, folder: Path) -> FreshRecovery:
    """Recover a state as a trial does: a fresh NAS imports and publishes, a client mounts and checks.

    The disks are recorded in `folder`, from the import to the end of the client's checks. Raises
    `StorageFailed` when a step hangs or the volume does not come back, `GuestDied` when a kernel
    crashes. Raises `HarnessError` when the host failed a machine or the shelf.
    """
    folder.mkdir(parents=True)
    own = replace(trial, fault=None, folder=folder, scratch=folder)
    evidence = EvidenceWriter(folder=folder, require_host=lab.require_host)
    evidence.write(SPEC, own.spec.as_json())
    machines = Machines(trial=own, lab=lab)
    machines.shelf.directory.mkdir()
    view = machines.shelf.directory / CUT_STATE
    write_crash_state(view, state)
    with closing(machines):
        machines.begin_checker()
        try:
            back = bring_nas_back(own, machines, evidence, view)
            if back is not None:
                client = machines.checker()
                if check(own, evidence, client):
                    machines.give_checker_back(client)
                observe_status(evidence, back.nas, lab.zfs)
        finally:  # a failure of the host is not the state's
            machines.shelf.require_healthy()
            lab.require_host()
    shown = load_evidence(folder)
    return FreshRecovery(
        evidence=shown,
        recording=load_recording(machines.shelf.recording),
        is_imported=back is not None,
        health=None if back is None else _health(shown),
    )


def _health(evidence: Evidence) -> PoolHealth:
    """The pool's health after the client's checks; raises `UnreadableError`."""
    output = evidence.output(Step.POOL_STATUS)
    assert output is not None, "it was observed"
    status = parse_status(output)
    return PoolHealth(state=status.state, errors=status.data_errors)

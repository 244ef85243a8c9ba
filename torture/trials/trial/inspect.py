"""The last stages of every trial: the disks' state is kept, a client checks it, and the NAS scrubs it."""

from __future__ import annotations

from functools import partial

from torture.choices.matrix.axes import ADMINISTRATION
from torture.facts.evidence.folder import CHECK_STATE, Step
from torture.facts.recording.accounting import everything
from torture.facts.recording.crash_state import write_crash_state
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.trials.trial.administered.questions import wait_until_done
from torture.trials.trial.check import check
from torture.trials.trial.own_root.boots import boots
from torture.trials.trial.recovery import scrub
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_SYNC_DEADLINE_S = 120


def inspect(trial: Trial, machines: Machines, evidence: EvidenceWriter, nas: Machine) -> None:
    """Check and scrub.

    The disks as they are before it become a crash state of their own, which a repair in place leaves
    whole: they can be inspected again.
    """
    shelf, administration = machines.shelf, trial.cell[ADMINISTRATION]
    if administration is not None:
        with evidence.stage("wait for administration"):
            wait_until_done(administration, evidence, nas)
    with evidence.stage("check"):
        evidence.observe_to_end(nas, Step.POOL_SYNC, pool.SYNC, deadline_s=_SYNC_DEADLINE_S)
        before = shelf.control.status().seq
        state = everything(shelf.recording, cut=before, disks=trial.disks_left)
        write_crash_state(shelf.directory / CHECK_STATE, state)
        vm_boots = partial(boots, machines, evidence, nas) if trial.boots_from_disk else None
        client = machines.checker()
        if check(trial, evidence, client, vm_boots):
            machines.give_checker_back(client)
    with evidence.stage("scrub"):
        scrub(evidence, nas, shelf=shelf, zfs=machines.lab.zfs)

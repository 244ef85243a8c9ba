"""The last stages of every trial: what the disks hold is named, checked by a client, and scrubbed."""

from __future__ import annotations

from functools import partial

from torture.choices.matrix.axes import ADMINISTRATION
from torture.facts.evidence.folder import CHECK_STATE, Step
from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import write_crash_state
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.trials.trial.administered.questions import wait_until_done
from torture.trials.trial.check import check
from torture.trials.trial.context import TrialContext
from torture.trials.trial.outage import observe_to_end
from torture.trials.trial.own_root.boots import boots
from torture.trials.trial.recovery import scrub

_SYNC_DEADLINE_S = 120


def inspect(context: TrialContext, nas: Machine) -> None:
    """Check and scrub.

    The disks as they are before it become a crash state of their own: a repair in place takes
    nothing away from what can be inspected again.
    """
    if context.spec.cell[ADMINISTRATION] is not None:
        with context.stage("wait for administration"):
            wait_until_done(context, nas)
    with context.stage("check"):
        observe_to_end(context, nas, Step.POOL_SYNC, pool.SYNC, deadline_s=_SYNC_DEADLINE_S)
        before = context.shelf.control.status().seq
        state = keep_all(context.shelf.recording, cut=before, disks=context.disks_left)
        write_crash_state(context.shelf.directory / CHECK_STATE, state)
        check(context, partial(boots, context, nas) if context.boots_from_disk else None)
    with context.stage("scrub"):
        scrub(context, nas)

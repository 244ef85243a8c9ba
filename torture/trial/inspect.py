"""The last stages of every trial: what the disks hold is named, checked by a client, and scrubbed."""

from __future__ import annotations

from torture.evidence.folder import CHECK_STATE
from torture.lab.machine import Machine
from torture.recording.accounting import everything
from torture.recording.crash_state import write_crash_state
from torture.trial.check import check
from torture.trial.context import TrialContext
from torture.trial.recovery import scrub
from torture.trial.setup import settle


def inspect(context: TrialContext, nas: Machine) -> None:
    """Check and scrub.

    The disks as they are before it become a crash state of their own: a repair in place takes
    nothing away from what can be inspected again.
    """
    with context.stage("check"):
        settle(nas)
        before = context.shelf.control.status().seq
        state = everything(context.shelf.recording, cut=before, disks=context.disks_left)
        write_crash_state(context.shelf.directory / CHECK_STATE, state)
        check(context)
    with context.stage("scrub"):
        scrub(context, nas)

"""The last stages of every trial: what the disks hold is named, checked by a client, and scrubbed."""

from __future__ import annotations

from torture.evidence.folder import CHECK_VIEW
from torture.lab.machine import Machine
from torture.plan.survivors import everything
from torture.recording.views import write_view
from torture.trial.check import check
from torture.trial.context import Bench
from torture.trial.recovery import scrub
from torture.trial.setup import settle


def look(bench: Bench, nas: Machine) -> None:
    """Check and scrub.

    The disks as they are before it become a view of their own: a repair in place takes nothing away
    from what can be looked at again.
    """
    with bench.stage("check"):
        settle(nas)
        before = bench.shelf.control.status().seq
        view = everything(bench.shelf.recording, cut=before, disks=bench.disks_left)
        write_view(bench.shelf.directory / CHECK_VIEW, view)
        check(bench)
    with bench.stage("scrub"):
        scrub(bench, nas)

"""The moment of the cut: the load runs for its planned time, then the plan's target comes."""

from __future__ import annotations

import time

from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import FreezeOn
from torture.machines.shelf.server import Shelf
from torture.trials.plan.cut_plan import TARGETS, Aim, CutPlan
from torture.trials.trial.loads import Loads

_BEGIN_DEADLINE_S = 10
_EVENT_DEADLINE_S = 8.0
"""A transaction group begins to be written 5 s after the last one (`zfs_txg_timeout`, zfs(4))."""
_EVENT_POLL_S = 0.01
_WARM_UP_DEADLINE_S = 30
_LOAD_POLL_S = 1.0


def let_load_run(plan: CutPlan, shelf: Shelf, loads: Loads, *, may_end: bool = False) -> None:
    """Return after the planned time; raises `HarnessError` when the room ends, or a load.

    A load may end where its disk takes no more writes.
    """
    end = time.monotonic() + plan.after_ms / 1000
    while (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOAD_POLL_S))
        shelf.require_room()
        if not may_end:
            loads.raise_if_over()


def wait_for_moment(plan: CutPlan, shelf: Shelf, loads: Loads, nas: Machine) -> bool:
    """Return at the planned moment; the load began with its first acknowledgement.

    True when the plan's target came. If it was an event of a disk, the shelf has frozen itself.
    Where the target does not come in time, the cut strikes without it.
    """
    let_load_run(plan, shelf, loads)
    match plan.aim:
        case Aim.ANYWHERE:
            return True
        case Aim.OPERATION:
            begun = loads.begun
            if not loads.wait_until(lambda: loads.begun > begun, deadline_s=_BEGIN_DEADLINE_S):
                raise HarnessError(f"the load began no operation for {_BEGIN_DEADLINE_S} s")
        case Aim.ACKNOWLEDGED:
            acknowledged = loads.acknowledged
            if not loads.wait_until(
                lambda: loads.acknowledged > acknowledged, deadline_s=_BEGIN_DEADLINE_S
            ):
                return False  # the load stalled: the cut is empty, and its document shows it
        case _:
            return _wait_for_event(plan, shelf, nas)
    time.sleep(plan.delay_ms / 1000)
    return True


def _wait_for_event(plan: CutPlan, shelf: Shelf, nas: Machine) -> bool:
    target = TARGETS[plan.aim]
    if target.warm_up:
        nas.run(*target.warm_up, deadline_s=_WARM_UP_DEADLINE_S)
    if target.stir:
        # before the shelf may freeze: the agent of a NAS that stands still does not answer
        nas.agent.start(target.stir)
    shelf.freeze_on(
        FreezeOn(
            event=target.event,
            role=target.role,
            count=plan.count,
            zil_uncovered=target.zil_uncovered,
            is_zil_reused=target.is_zil_reused,
        )
    )
    return wait_until_true(
        lambda: shelf.is_frozen, deadline_s=_EVENT_DEADLINE_S, poll_s=_EVENT_POLL_S
    )

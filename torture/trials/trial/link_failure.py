"""The failure of the NAS's link, its target's restart, or its handover, amid the load: no cut yet."""

from __future__ import annotations

import random
import time

from torture.choices.matrix.axes import NAS_LINK
from torture.facts.evidence.cut_document import LinkFailure
from torture.machines.lab.machine import Machine
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.handover import hand_over
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_BEGINS_MS = (500, 2_500)
_SCRIPT_DEADLINE_S = 30
_ANSWER_DEADLINE_S = 120
"""TCP sends again after twice the time each, and initiators log in anew."""


def fail_link(
    trial: Trial, machines: Machines, loads: Loads, nas: Machine
) -> tuple[LinkFailure | None, Machine]:
    """Interrupt the NAS for the cell's time; return once an operation was acknowledged after it.

    A NAS with two addresses loses the first one, if its link fails. In any other case it is unplugged,
    or its target restarts. Returns the interruption and the NAS that has the pool now: another one
    after a handover. Does nothing where the link stays. Raises `HarnessError` without a cable to
    pull, and `StorageFailed` where the handover fails.
    """
    interruption = trial.cell[NAS_LINK]
    if not interruption.length_s and not interruption.is_handover:
        return None, nas
    drawn = random.Random(f"link fails/{trial.spec.seed}")
    time.sleep(drawn.uniform(*_BEGINS_MS) / 1000)
    _switch(trial, machines, nas, is_up=False)
    down_ms = trial.clock_ms()
    try:
        time.sleep(interruption.length_s)
        if interruption.is_handover:
            nas = hand_over(trial, machines, nas)
        acknowledged, up_ms = loads.acknowledged, trial.clock_ms()
    finally:
        _switch(trial, machines, nas, is_up=True)
    loads.wait_until(lambda: loads.acknowledged > acknowledged, deadline_s=_ANSWER_DEADLINE_S)
    failure = LinkFailure(
        down_ms=round(down_ms, 3),
        up_ms=round(up_ms, 3),
        has_other_path=_path_scripts(trial) is not None,
    )
    return failure, nas


def _path_scripts(trial: Trial) -> tuple[str, str] | None:
    """Those of a NAS that loses one of its two paths alone."""
    interruption = trial.cell[NAS_LINK]
    if interruption.is_of_target or interruption.is_handover:
        return None
    return trial.transport.traits.path_scripts


def _switch(trial: Trial, machines: Machines, nas: Machine, *, is_up: bool) -> None:
    is_of_target = trial.cell[NAS_LINK].is_of_target
    scripts = trial.transport.traits.target_scripts if is_of_target else _path_scripts(trial)
    if scripts is None:
        machines.lab.network.plug_nas(is_in=is_up)
    else:
        nas.must("sh", "-c", scripts[is_up], deadline_s=_SCRIPT_DEADLINE_S)

"""The failure of the NAS's link, or its target's restart, amid the load: both machines live."""

from __future__ import annotations

import random
import time

from torture.choices.matrix.axes import NAS_LINK
from torture.facts.evidence.cut_document import LinkFailure
from torture.machines.lab.machine import Machine
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_BEGINS_MS = (500, 2_500)
_SCRIPT_DEADLINE_S = 30
_ANSWER_DEADLINE_S = 120
"""TCP sends again after twice the time each, and initiators log in anew."""


def fail_link(trial: Trial, machines: Machines, loads: Loads, nas: Machine) -> LinkFailure | None:
    """Interrupt the NAS for the cell's time; return once an operation was acknowledged after it.

    A NAS with two addresses loses the first one, and any other NAS is unplugged, if its target does
    not restart. Does nothing, and returns None, where the link stays. Raises `HarnessError` without
    a cable to pull.
    """
    interruption = trial.cell[NAS_LINK]
    if not interruption.length_s:
        return None
    drawn = random.Random(f"link fails/{trial.spec.seed}")
    time.sleep(drawn.uniform(*_BEGINS_MS) / 1000)
    _switch(trial, machines, nas, is_up=False)
    down_ms = trial.clock_ms()
    try:
        time.sleep(interruption.length_s)
        acknowledged, up_ms = loads.acknowledged, trial.clock_ms()
    finally:
        _switch(trial, machines, nas, is_up=True)
    loads.wait_until(lambda: loads.acknowledged > acknowledged, deadline_s=_ANSWER_DEADLINE_S)
    return LinkFailure(
        down_ms=round(down_ms, 3),
        up_ms=round(up_ms, 3),
        has_other_path=(
            not interruption.is_of_target and trial.transport.traits.path_scripts is not None
        ),
    )


def _switch(trial: Trial, machines: Machines, nas: Machine, *, is_up: bool) -> None:
    traits = trial.transport.traits
    is_of_target = trial.cell[NAS_LINK].is_of_target
    scripts = traits.target_scripts if is_of_target else traits.path_scripts
    if scripts is None:
        machines.lab.network.plug_nas(is_in=is_up)
    else:
        nas.must("sh", "-c", scripts[is_up], deadline_s=_SCRIPT_DEADLINE_S)

"""The failure of the NAS's link amid the load: both machines live, and do not hear each other."""

from __future__ import annotations

import random
import time

from torture.choices.matrix.axes import NAS_LINK
from torture.facts.evidence.cut_document import LinkFailure
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_BEGINS_MS = (500, 2_500)
_ANSWER_DEADLINE_S = 120
"""TCP sends again after twice the time each, and initiators log in anew."""


def fail_link(trial: Trial, machines: Machines, loads: Loads) -> LinkFailure:
    """Unplug the NAS for the cell's time; return once an operation was acknowledged after it.

    Does nothing, and returns an empty failure, where the link stays. Raises `HarnessError` on a
    network without a cable.
    """
    down_s = trial.cell[NAS_LINK]
    if not down_s:
        return LinkFailure()
    drawn = random.Random(f"link fails/{trial.spec.seed}")
    time.sleep(drawn.uniform(*_BEGINS_MS) / 1000)
    network = machines.lab.network
    network.plug_nas(is_in=False)
    down_ms = trial.clock_ms()
    try:
        time.sleep(down_s)
        acknowledged, up_ms = loads.acknowledged, trial.clock_ms()
    finally:
        network.plug_nas(is_in=True)
    loads.wait_until(lambda: loads.acknowledged > acknowledged, deadline_s=_ANSWER_DEADLINE_S)
    return LinkFailure(down_ms=round(down_ms, 3), up_ms=round(up_ms, 3))

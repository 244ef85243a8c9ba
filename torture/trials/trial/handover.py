"""A standby takes over: the pool moves to another NAS with the same disks, without a loss of power.

The standby starts once the former NAS is off, so no disk has two masters. It has the former's
address, and answers the clients' old connections with a reset. All data are in the pool by its export.
"""

from __future__ import annotations

from torture.choices.volumes import POOL
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.trials.trial.setup import plant, wait_for_disks
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.storage import must_not_hang, storage_must
from torture.trials.trial.shared.trial import Trial

_STANDBY = "standby"
_RELEASE_DEADLINE_S = 60
_POOL_DEADLINE_S = 300
_VOLUME_DEADLINE_S = 40


def hand_over(trial: Trial, machines: Machines, nas: Machine) -> Machine:
    """The NAS that publishes the volume from now on; `nas`, which no client reaches any more, is off.

    A fault of the NAS is planted in the standby, too. Raises `StorageFailed` where the pool or its
    volume does not move, and `HarnessError` where the target keeps it.
    """
    transport = trial.transport
    release, export = transport.traits.release_script, f"zpool export {POOL}"
    must_not_hang(nas, "the target hung at its end", release, deadline_s=_RELEASE_DEADLINE_S)
    must_not_hang(nas, "the export of the pool hung", export, deadline_s=_POOL_DEADLINE_S)
    nas.kill()
    standby = machines.start_nas(_STANDBY, trial.disks, draws_anew=True)
    wait_for_disks(standby, trial.disks)
    for failure, script, deadline_s in (
        ("the standby did not import", " ".join(pool.import_command()), _POOL_DEADLINE_S),
        ("the standby has no volume", transport.wait_for_volume_script(), _VOLUME_DEADLINE_S),
        (
            "the standby did not publish",
            transport.publish_script(trial.volume_options),
            _VOLUME_DEADLINE_S,
        ),
    ):
        storage_must(standby, failure, script, deadline_s=deadline_s)
    if trial.fault is not None:
        plant(standby, trial.fault.in_nas)
    return standby

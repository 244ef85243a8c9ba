"""Failures of the NAS beside its power: its link, its target's restart, a handover to a standby.

A failure of the machinery breaks the trial off.

The standby starts once the former NAS is off, so no disk has two masters. It has the former's
address, and answers the clients' old connections with a reset. All data are in the pool by its export.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from torture.choices.matrix.cells import AWAY, NAS_LINK
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.axes.setting import Interruption
from torture.facts.evidence.cut_document import LinkFailure
from torture.facts.evidence.folder import OUTAGE, Outage
from torture.machines.lab.machine import GuestDied, Machine, MachineFailed
from torture.machines.nas import pool
from torture.trials.trial.ending import end_target
from torture.trials.trial.loads import Loads
from torture.trials.trial.setup import plant, run_script, wait_for_disks
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, must_not_hang, storage_must

_SOUND_DEADLINE_S = 30
_LOG_DEADLINE_S = 30
_LOG_LINES = 200
_HUNG_TASKS = "echo w > /proc/sysrq-trigger; sleep 1; dmesg | tail -n {lines}"
"""Makes the kernel print the stacks of blocked tasks (Linux Documentation/admin-guide/sysrq.rst)."""


class BrokenOff(HarnessError):
    """The machinery failed with sound disks: the evidence so far still holds."""


@contextmanager
def keep_outage(machines: Machines, evidence: EvidenceWriter) -> Iterator[None]:
    """Keep a failure of the storage as evidence; the trial ends there, and the oracles judge it.

    Raises `BrokenOff` for a failure that may be the machinery's own. Raises `HarnessError` for a
    failure of the shelf.
    """
    try:
        yield
    except HarnessError as failure:
        if machines.shelf.is_started:  # else a cut stopped it, and it has not failed
            machines.shelf.require_healthy()
        failed = failure.machine if isinstance(failure, MachineFailed) else None
        if failed is None or not _is_sound(machines, failure, failed):
            raise BrokenOff(failure.message, hint=failure.hint) from failure
        outage = Outage(
            stage=next(reversed(evidence.timings), ""),
            what=failure.message.splitlines()[0],
            machine=_role_of(failed),
            of_nas=failed.name == "nas",
            kernel=_kernel_log(failure, failed),
        )
        evidence.write(OUTAGE, outage.as_json())


def _role_of(machine: Machine) -> str:
    return machine.spec.console_log.name.removesuffix(".console.log")


def _is_sound(machines: Machines, failure: HarnessError, failed: Machine) -> bool:
    """Whether the machinery works: every machine answers and runs another command.

    A guest with a dead kernel does neither, and its console has the reason. The host ended a guest
    that is gone without a reason, even one that never came up.
    """
    try:
        machines.lab.require_host()
    except HarnessError:
        return False
    if isinstance(failure, GuestDied) and not failure.kernel_crashed:
        return False
    for machine in machines.all:
        if (isinstance(failure, GuestDied) and machine is failed) or (
            machine.has_exited_unexpectedly
        ):
            continue  # its kernel crashed
        if machine is failed and machines.trial.boots_from_disk and _role_of(failed) == "client":
            continue  # its programs are on the storage that failed
        try:
            if machine.is_alive():
                machine.must("true", deadline_s=_SOUND_DEADLINE_S)
        except HarnessError:
            return False
    return True


def _kernel_log(failure: HarnessError, failed: Machine) -> tuple[str, ...]:
    if isinstance(failure, GuestDied):
        return tuple(failure.message.splitlines()[1:])
    script = _HUNG_TASKS.format(lines=_LOG_LINES)
    try:
        return tuple(failed.run("sh", "-c", script, deadline_s=_LOG_DEADLINE_S).stdout.splitlines())
    except HarnessError as error:
        return (f"its kernel log could not be read: {error}",)


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
    if interruption == Interruption():
        return None, nas
    drawn = random.Random(f"link fails/{trial.spec.seed}")
    time.sleep(drawn.uniform(*_BEGINS_MS) / 1000)
    if interruption.fills_pool:
        run_script(nas, pool.FILL, deadline_s=_SCRIPT_DEADLINE_S)
        full_ms = round(trial.clock_ms(), 3)
        return LinkFailure(down_ms=full_ms, up_ms=full_ms, has_other_path=False), nas
    _switch(trial, machines, nas, is_up=False)
    down_ms = trial.clock_ms()
    try:
        time.sleep(max(interruption.length_s, trial.cell[AWAY] if interruption.is_of_link else 0))
        if interruption.is_handover:
            nas = hand_over(trial, machines, nas)
        acknowledged, up_ms = loads.acknowledged, trial.clock_ms()
    finally:
        _switch(trial, machines, nas, is_up=True)
    loads.wait_until(
        lambda: loads.acknowledged > acknowledged or loads.are_over,
        deadline_s=_ANSWER_DEADLINE_S + trial.cell[AWAY],
    )
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


_STANDBY = "standby"
_POOL_DEADLINE_S = 300
_VOLUME_DEADLINE_S = 40


def hand_over(trial: Trial, machines: Machines, nas: Machine) -> Machine:
    """The NAS that publishes the volume from now on; `nas`, which no client reaches any more, is off.

    A fault of the NAS is planted in the standby, too. Raises `StorageFailed` where the pool or its
    volume does not move, and `HarnessError` where the target keeps it.
    """
    transport = trial.transport
    end_target(trial, nas)
    export = f"zpool export {POOL}"
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

"""The stages after the cut: the NAS comes back, a client that lived goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.volumes import POOL
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.trials.trial.administered.questions import ask
from torture.trials.trial.context import TrialContext
from torture.trials.trial.outage import (
    PATIENCE_S,
    StorageFailed,
    must_have_ended,
    observe_to_end,
    storage_must,
)
from torture.trials.trial.setup import plant, wait_for_disks
from torture.trials.trial.spoil import spoil

_IMPORT_DEADLINE_S = 300
_REFUSED = 1
"""How zpool ends that was refused; it is stopped by a signal where it gave up itself."""
_SETTLE_DEADLINE_S = 60
_VOLUME_DEADLINE_S = 40
_STATUS_DEADLINE_S = 120
_SCRUB_DEADLINE_S = 300
_BLOCKS_DEADLINE_S = 300
_END_DEADLINE_S = 90
_UMOUNT_DEADLINE_S = 60
_DETACH_DEADLINE_S = 30
"""Whether it succeeds or not: what matters is that nothing more comes, which is waited for."""
_DMESG_DEADLINE_S = 20
_IDLE_DEADLINE_S, _IDLE_TRIES = 40, 6
_SYNC_DEADLINE_S = 120
_STIRS_MAX = 3

_IMPORTS = (
    (Step.POOL_IMPORT, ()),
    (Step.POOL_IMPORT_M, ("-m",)),
    (Step.POOL_IMPORT_REWIND, ("-m", "-F")),
)
"""What an operator would try, in this order."""
_IMPORTS_AGAIN = (
    (Step.POOL_IMPORT_AGAIN, ()),
    (Step.POOL_IMPORT_M_AGAIN, ("-m",)),
    (Step.POOL_IMPORT_REWIND_AGAIN, ("-m", "-F")),
)


def bring_nas_back(
    context: TrialContext,
    view: Path,
    *,
    again: bool = False,
    import_deadline_s: float = _IMPORT_DEADLINE_S,
    volume_deadline_s: float = _VOLUME_DEADLINE_S,
) -> Machine | None:
    """Start the NAS on what a view says its disks kept; None when no import brings the pool back.

    `again`: after the second cut.
    Raises `StorageFailed` when an import hangs, or the volume does not come back or cannot be published.
    """
    with _out_of_reach(context):
        nas = _imported(context, view, again=again, import_deadline_s=import_deadline_s)
        if nas is None:
            return None
        _observe_status(context, nas)
        ask(context, nas, Step.ADMINISTRATION_STATE)
        script = context.transport.wait_for_volume_script()
        storage_must(nas, "the volume did not come back", script, deadline_s=volume_deadline_s)
        publishing_ms = context.clock_ms()
        script = context.transport.publish_script(context.volume_options)
        storage_must(nas, "the volume cannot be published", script, deadline_s=volume_deadline_s)
    context.published = (publishing_ms, context.clock_ms())
    return nas


@contextmanager
def _out_of_reach(context: TrialContext) -> Iterator[None]:
    """Keep a NAS that comes back from being asked too early, where its clients do not bear that."""
    if not context.transport.traits.network_comes_last:
        yield
        return
    context.lab.network.plug_nas(is_in=False)
    try:
        yield
    finally:
        context.lab.network.plug_nas(is_in=True)


def _imported(
    context: TrialContext, view: Path, *, again: bool, import_deadline_s: float
) -> Machine | None:
    """The NAS with its pool; None when no import brings that back."""
    context.shelf.start(context.disks_left, view=view)
    fault = None if again else context.fault
    if fault is not None and fault.spoiler is not None:
        spoil(context.shelf, fault.spoiler, view=view, disk=context.disks_left[0])
    nas = context.start_nas(3 if again else 2, context.disks_left)
    wait_for_disks(nas, context.disks_left)
    if fault is not None:
        plant(nas, fault.before_import)
        import_deadline_s = fault.import_patience_s or import_deadline_s
    for step, options in _IMPORTS_AGAIN if again else _IMPORTS:
        tried = _try_import(context, nas, step, options, deadline_s=import_deadline_s)
        if tried.exit_code == 0:
            return nas
        if tried.exit_code is None:
            raise StorageFailed(
                f"the import of the pool hung for {import_deadline_s:g} s", machine=nas
            )
    context.observe(nas, Step.POOL_REFUSALS, pool.REFUSALS, deadline_s=_DMESG_DEADLINE_S)
    return None


def _try_import(
    context: TrialContext, nas: Machine, step: Step, options: tuple[str, ...], *, deadline_s: float
) -> Completed:
    """Import the pool; what gives nothing up is asked for once more where it is refused.

    The link of a disk may be gone for a moment, and the kernel does not wait for it (`pool.make_script`):
    nobody would give up the log for that. Both answers are evidence.
    """
    argv = pool.import_command(*options)
    tried = context.observe(nas, step, argv, deadline_s=deadline_s)
    if tried.exit_code == _REFUSED and not options:
        nas.run("sh", "-c", pool.SETTLE, deadline_s=_SETTLE_DEADLINE_S)
        tried = context.observe(nas, step, argv, deadline_s=deadline_s)
    return tried


def scrub(context: TrialContext, nas: Machine) -> None:
    """Have ZFS read and verify everything, account for every block, and say what it found."""
    observe_to_end(context, nas, Step.POOL_SCRUB, pool.SCRUB, deadline_s=_SCRUB_DEADLINE_S)
    _observe_status(context, nas)
    _count_blocks(context, nas)
    context.observe(nas, Step.NAS_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)


def _count_blocks(context: TrialContext, nas: Machine) -> None:
    """Have every block of the pool accounted for, while the disks stand still.

    zdb reads the disks behind the back of the kernel's module: over a pool that changes it reports leaks
    that are none (zdb(8)). An idle pool writes nothing, not even uberblocks (`vdev_config_sync`), and
    the shelf's log says whether one was idle: it need not be exported, nor what is on it be torn down.
    """
    for _ in range(_STIRS_MAX):
        observe_to_end(context, nas, Step.POOL_SYNC, pool.SYNC, deadline_s=_SYNC_DEADLINE_S)
        before = context.shelf.control.status().seq
        blocks = nas.run_verbose(*pool.BLOCKS, deadline_s=_BLOCKS_DEADLINE_S)
        stood_still = context.shelf.control.status().seq == before
        step = Step.POOL_BLOCKS if stood_still else Step.POOL_BLOCKS_ASTIR
        context.keep(step, blocks)
        must_have_ended(nas, step, blocks, deadline_s=_BLOCKS_DEADLINE_S)
        if stood_still:
            return


def _observe_status(context: TrialContext, nas: Machine) -> None:
    status = context.lab.zfs.status_command(POOL)
    observe_to_end(context, nas, Step.POOL_STATUS, status, deadline_s=_STATUS_DEADLINE_S)


def wait_until_idle(context: TrialContext, nas: Machine) -> None:
    """Let what a killed client had sent arrive before another one looks.

    Raises `StorageFailed` when the NAS is not done with it within some minutes.
    """
    script = context.transport.wait_until_idle_script()
    for _ in range(_IDLE_TRIES - 1):
        if nas.run("sh", "-c", script, deadline_s=_IDLE_DEADLINE_S).exit_code == 0:
            return
    otherwise = "the NAS is not done with what a killed client had sent"
    storage_must(nas, otherwise, script, deadline_s=_IDLE_DEADLINE_S)


def go_on(context: TrialContext, *, client: Machine, for_ms: float) -> bool:
    """The client that lived: it reconnects, and goes on writing for some seconds. Whether it still does.

    A client whose every writer has failed (say, btrfs went read-only) has nothing to go on with:
    that is evidence. One that neither goes on nor fails raises `StorageFailed`.
    """
    loads = context.loads
    acknowledged = loads.acknowledged
    resumed = loads.wait_until(
        lambda: loads.acknowledged > acknowledged or loads.are_over,
        deadline_s=PATIENCE_S,
    )
    client.raise_if_dead()
    if not resumed:
        raise StorageFailed(
            f"the client did not go on within {PATIENCE_S} s of the NAS's return",
            machine=client,
        )
    time.sleep(for_ms / 1000)
    return not loads.are_over


def say_last_words(context: TrialContext, *, client: Machine, nas: Machine | None = None) -> None:
    """What the kernels of those that are left have said, before their power is cut."""
    if nas is not None:
        context.observe(nas, Step.NAS_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
    context.observe(client, Step.CLIENT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)


def stop_client(context: TrialContext, *, client: Machine) -> None:
    """The client that lived ends its load and lets go of its disk."""
    context.loads.finish(deadline_s=_END_DEADLINE_S)
    context.observe(client, Step.CLIENT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
    let_go(context, client)


def let_go(context: TrialContext, client: Machine) -> None:
    """Have a client write back all it has, and let go of its disk."""
    if context.is_mounted:
        umount: tuple[str, ...] = ("umount", MOUNT_POINT)
        if context.boots_from_disk:
            umount = ("sh", "-c", f"sync; umount {MOUNT_POINT}; mount -o remount,ro /")
        context.observe(client, Step.CLIENT_UMOUNT, umount, deadline_s=_UMOUNT_DEADLINE_S)
    else:
        context.observe(client, Step.CLIENT_UMOUNT, ("sync",), deadline_s=_UMOUNT_DEADLINE_S)
    if script := context.attachment.detach_script:
        context.observe(
            client, Step.CLIENT_DETACH, ("sh", "-c", script), deadline_s=_DETACH_DEADLINE_S
        )

"""The stages after the cut: the NAS returns, and a client that lived continues."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torture.choices.experiments.damage import SPOILERS, Spoiler
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import ADMINISTRATION, EARLY, EVENT, NAS_LINK
from torture.choices.transports.protocol import Transport
from torture.choices.volumes import POOL
from torture.facts.axes.early import Early
from torture.facts.axes.event import Event
from torture.facts.evidence.folder import IMPORTS, IMPORTS_AGAIN, Completed, Step
from torture.facts.recording.certain_content import CertainContent
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import load_recording
from torture.facts.zfs.versions import ZfsVersion
from torture.machines.lab.machine import Machine
from torture.machines.lab.network import Network
from torture.machines.nas import pool
from torture.machines.shelf.server import Shelf
from torture.oracles.verdict.mount import read_nas_log
from torture.shell import wait_for_path
from torture.trials.trial.administer import ask
from torture.trials.trial.loads import Loads
from torture.trials.trial.promises.proof import require_planned
from torture.trials.trial.setup import plant, wait_for_disks
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import (
    EvidenceWriter,
    StorageFailed,
    must_have_ended,
    storage_must,
)

_IMPORT_DEADLINE_S = 300
_PANIC_PATIENCE_S = 20
"""A thread of ZFS that panics stops for ever. An import that can do without it ends within this time."""
_REFUSED, _KILLED = 1, 137
"""The exit codes of a refused zpool command, and of one whose thread in the kernel died."""
_SETTLE_DEADLINE_S = 60
_VOLUME_DEADLINE_S = 40
_STATUS_DEADLINE_S = 120
_SCRUB_DEADLINE_S = 300
_BLOCKS_DEADLINE_S = 300
_END_DEADLINE_S = 90
_REMEDY_TRIES = 30
_REMEDY_DEADLINE_S = 120
_UMOUNT_DEADLINE_S = 60
_DETACH_DEADLINE_S = 30
"""A detach may fail: the trial then waits until no more requests come (`wait_until_idle`)."""
_DMESG_DEADLINE_S = 20
_IDLE_DEADLINE_S, _IDLE_TRIES = 40, 6
_SYNC_DEADLINE_S = 120
_STIRS_MAX = 3

_IMPORT_OPTIONS = ((), ("-m",), ("-m", "-F"))
"""Those of each of an operator's tries (`IMPORTS`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NasBack:
    """A NAS that came back, with begin and end of its volume's publication by the trial's clock."""

    nas: Machine
    publishing_ms: float
    published_ms: float


def bring_nas_back(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    view: Path,
    *,
    again: bool = False,
    import_deadline_s: float = _IMPORT_DEADLINE_S,
    volume_deadline_s: float = _VOLUME_DEADLINE_S,
) -> NasBack | None:
    """Start the NAS on its disks, as a view has them; None when no import brings the pool back.

    `again`: after the second cut. Raises `StorageFailed` when an import hangs, or when the volume
    does not come back or cannot be published.
    """
    transport, zfs = trial.transport, machines.lab.zfs
    with _out_of_reach(transport, machines.lab.network):
        nas = _start_on(trial, machines, view, again=again)
        if trial.fault is not None and not again:
            plant(nas, trial.fault.before_import)
            import_deadline_s = trial.fault.import_patience_s or import_deadline_s
        is_forced = trial.cell[EVENT] is Event.TAKEOVER
        if not _is_imported(
            evidence, nas, again=again, is_forced=is_forced, deadline_s=import_deadline_s
        ):
            return None
        if trial.cell[NAS_LINK].fills_pool and not again:
            storage_must(nas, "the pool stays full", pool.FREE, deadline_s=_STATUS_DEADLINE_S)
        observe_status(evidence, nas, zfs)
        state, administration = Step.ADMINISTRATION_STATE, trial.cell[ADMINISTRATION]
        ask(administration, evidence, nas, state, zfs=zfs)
        script = transport.wait_for_volume_script()
        storage_must(nas, "the volume did not come back", script, deadline_s=volume_deadline_s)
        script = transport.publish_script(trial.volume_options)
        order, window_s = trial.cell[EARLY]
        if order is not Early.IN_ORDER and not again:
            script = transport.early_script(trial.volume_options)
            storage_must(nas, "the port does not open", script, deadline_s=volume_deadline_s)
            time.sleep(window_s)
            script = transport.late_script(trial.volume_options)
        publishing_ms = trial.clock_ms()
        storage_must(nas, "the volume cannot be published", script, deadline_s=volume_deadline_s)
    return NasBack(nas=nas, publishing_ms=publishing_ms, published_ms=trial.clock_ms())


@contextmanager
def _out_of_reach(transport: Transport, network: Network) -> Iterator[None]:
    """Unplug a returning NAS until it has published, where its clients would otherwise give up."""
    if not transport.traits.network_comes_last:
        yield
        return
    network.plug_nas(is_in=False)
    try:
        yield
    finally:
        network.plug_nas(is_in=True)


def _start_on(trial: Trial, machines: Machines, view: Path, *, again: bool) -> Machine:
    """The NAS with the disks that are left, as a view has them and a fault damages them."""
    shelf, disks = machines.shelf, trial.disks_left
    shelf.start(disks, view=view)
    require_planned(shelf, view, disks)
    if not again and trial.fault is not None and trial.fault.damage is not None:
        spoil(shelf, SPOILERS[trial.fault.damage], view=view, disk=disks[0])
    nas = machines.start_nas(3 if again else 2, disks)
    wait_for_disks(nas, disks)
    return nas


def spoil(shelf: Shelf, spoiler: Spoiler, *, view: Path, disk: ShelfDisk) -> None:
    """Make a fault damage a disk of a view that the shelf serves.

    It is a write like the NAS's own: in the recording of the disks' next life, not in the view.
    Raises `HarnessError` when the recording holds no data that the fault could damage.
    """
    state = read_crash_state(view)
    recording = load_recording(state.recording)
    certain = CertainContent(
        recording=recording, disk=recording.place_of(disk.serial), cut=state.cut
    )
    for patch in spoiler(certain):
        shelf.overwrite(disk, patch)


def _is_imported(
    evidence: EvidenceWriter, nas: Machine, *, again: bool, is_forced: bool, deadline_s: float
) -> bool:
    """Whether one of an operator's tries brings the pool back.

    `is_forced`: another node had the pool, and is known to be off.

    After the refusal of an import that gives nothing up, the operator tries it once more. The link
    of a disk may be gone for a moment, and the kernel does not wait for it (`pool.make_script`). An
    operator would not give up the intent log for that. Both answers are evidence.
    """
    steps = IMPORTS_AGAIN if again else IMPORTS
    for step, options in zip(steps, _IMPORT_OPTIONS, strict=True):
        argv = pool.import_command(*(("-f", *options) if is_forced else options))
        tried = _try_import(evidence, nas, step, argv, deadline_s=deadline_s)
        if tried.exit_code == _REFUSED and not options:
            nas.run("sh", "-c", pool.SETTLE, deadline_s=_SETTLE_DEADLINE_S)
            tried = _try_import(evidence, nas, step, argv, deadline_s=deadline_s)
        if tried.exit_code == 0:
            return True
        if tried.exit_code == _KILLED:
            nas.raise_if_dead()
        if tried.exit_code is None:
            hung_s = tried.duration_ms / 1000
            raise StorageFailed(f"the import of the pool hung for {hung_s:.0f} s", machine=nas)
    evidence.observe(nas, Step.POOL_REFUSALS, pool.REFUSALS, deadline_s=_DMESG_DEADLINE_S)
    return False


def _try_import(
    evidence: EvidenceWriter, nas: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
) -> Completed:
    """Run an import to its end, and keep its output. It has less time after a panic of ZFS."""
    panicked_s: float | None = None

    def is_hopeless() -> bool:
        nonlocal panicked_s
        now_s = time.monotonic()
        if panicked_s is None and read_nas_log(nas.console().splitlines()).panics:
            panicked_s = now_s
        return panicked_s is not None and now_s > panicked_s + _PANIC_PATIENCE_S

    pid = nas.agent.start(argv)
    tried = nas.agent.finish(pid, argv, deadline_s=deadline_s, is_hopeless=is_hopeless)
    evidence.keep(step, tried)
    return tried


def scrub(evidence: EvidenceWriter, nas: Machine, *, shelf: Shelf, zfs: ZfsVersion) -> None:
    """Make ZFS read and verify everything and account for every block, and keep its findings."""
    evidence.observe_to_end(nas, Step.POOL_SCRUB, pool.SCRUB, deadline_s=_SCRUB_DEADLINE_S)
    observe_status(evidence, nas, zfs)
    _count_blocks(evidence, nas, shelf)
    evidence.observe(nas, Step.NAS_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)


def _count_blocks(evidence: EvidenceWriter, nas: Machine, shelf: Shelf) -> None:
    """Account for every block of the pool, while the disks stand still.

    zdb reads the disks without the kernel's module: on a pool that changes, it reports false leaks
    (zdb(8)). An idle pool writes nothing, not even uberblocks (`vdev_config_sync`). The shelf's
    recording shows whether the pool was idle. So the pool stays imported, with everything on it.
    """
    for _ in range(_STIRS_MAX):
        evidence.observe_to_end(nas, Step.POOL_SYNC, pool.SYNC, deadline_s=_SYNC_DEADLINE_S)
        before = shelf.control.status().seq
        blocks = nas.run_verbose(*pool.BLOCKS, deadline_s=_BLOCKS_DEADLINE_S)
        stood_still = shelf.control.status().seq == before
        step = Step.POOL_BLOCKS if stood_still else Step.POOL_BLOCKS_ASTIR
        evidence.keep(step, blocks)
        must_have_ended(nas, step, blocks, deadline_s=_BLOCKS_DEADLINE_S)
        if stood_still:
            return


def observe_status(evidence: EvidenceWriter, nas: Machine, zfs: ZfsVersion) -> None:
    """Keep the pool's status."""
    status = zfs.status_command(POOL)
    evidence.observe_to_end(nas, Step.POOL_STATUS, status, deadline_s=_STATUS_DEADLINE_S)


def wait_until_idle(transport: Transport, nas: Machine) -> None:
    """Let the requests of a killed client arrive before another client reads.

    Raises `StorageFailed` when the NAS is not done with them within some minutes.
    """
    script = transport.wait_until_idle_script()
    for _ in range(_IDLE_TRIES - 1):
        if nas.run("sh", "-c", script, deadline_s=_IDLE_DEADLINE_S).exit_code == 0:
            return
    failure = "the NAS did not finish the requests of a killed client"
    storage_must(nas, failure, script, deadline_s=_IDLE_DEADLINE_S)


def go_on(loads: Loads, *, client: Machine, for_ms: float, patience_s: float) -> bool:
    """Whether the client that lived still writes, some seconds after it has reconnected.

    A client whose every writer has failed (e.g. btrfs became read-only) cannot continue: that is
    evidence. A client that neither continues nor fails raises `StorageFailed`.
    """
    acknowledged = loads.acknowledged
    resumed = loads.wait_until(
        lambda: loads.acknowledged > acknowledged or loads.are_over, deadline_s=patience_s
    )
    client.raise_if_dead()
    if not resumed:
        raise StorageFailed(
            f"the client did not go on within {patience_s} s of the NAS's return", machine=client
        )
    time.sleep(for_ms / 1000)
    return not loads.are_over


def keep_kernel_logs(
    evidence: EvidenceWriter, *, client: Machine, nas: Machine | None = None
) -> None:
    """Keep the kernel logs of the machines that are left, before their power loss."""
    if nas is not None:
        evidence.observe(nas, Step.NAS_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
    evidence.observe(client, Step.CLIENT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)


def stop_client(trial: Trial, evidence: EvidenceWriter, loads: Loads, client: Machine) -> None:
    """Make the client that lived end its load and detach its disk; a dead disk is brought back first."""
    is_dead = loads.are_over
    loads.finish(deadline_s=_END_DEADLINE_S)
    keep_kernel_logs(evidence, client=client)
    if is_dead and trial.tries_remedies:
        try_remedies(trial, evidence, client)
    detach(trial, evidence, client)


def try_remedies(trial: Trial, evidence: EvidenceWriter, client: Machine) -> None:
    """Wait, then attach anew, until a write to a dead disk succeeds; both tries are evidence."""
    write = trial.write_script
    again = f"for i in $(seq {_REMEDY_TRIES}); do {write} && exit; sleep 1; done; exit 1"
    for step, script in (
        (Step.REMEDY_WAIT, again),
        (Step.REMEDY_LOG_IN, f"{_attach_anew_script(trial)}\n{write}"),
    ):
        argv = ("sh", "-c", script)
        tried = evidence.observe(client, step, argv, deadline_s=_REMEDY_DEADLINE_S)
        if tried.exit_code == 0:
            return


def _attach_anew_script(trial: Trial) -> str:
    """Shell: unmount, let go of the NAS as far as possible, and attach and mount anew."""
    attachment = trial.attachment
    scripts = [f"umount {MOUNT_POINT}"] if trial.is_mounted else []
    scripts += [f"({attachment.detach_script}) || true"] if attachment.detach_script else []
    scripts += [f"({attachment.guest_script})"] if attachment.guest_script else []
    if attachment.image is not None:
        scripts.append(f"({attachment.image.open_script})")
    if attachment.device is not None:
        scripts.append(wait_for_path(attachment.device))
    if trial.has_own_filesystem:
        scripts.append(shlex.join(trial.filesystem.mount))
    return "\n".join(("set -e", *scripts))


def detach(trial: Trial, evidence: EvidenceWriter, client: Machine) -> None:
    """Make a client write back all its data, and detach its disk."""
    argv: tuple[str, ...] = ("sync",)
    if trial.is_mounted:
        argv = ("umount", MOUNT_POINT)
        if trial.boots_from_disk:
            argv = ("sh", "-c", f"sync; umount {MOUNT_POINT}; mount -o remount,ro /")
    evidence.observe(client, Step.CLIENT_UMOUNT, argv, deadline_s=_UMOUNT_DEADLINE_S)
    if script := trial.attachment.detach_script:
        argv = ("sh", "-c", script)
        evidence.observe(client, Step.CLIENT_DETACH, argv, deadline_s=_DETACH_DEADLINE_S)

"""The client's own root on the NAS: its installation, and whether a VM has it after the cut."""

from __future__ import annotations

import time

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import SYNC
from torture.choices.volumes import set_sync_script
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import Completed, Step
from torture.machines.lab.machine import GuestDied, Machine
from torture.oracles.verdict.boot_verdict import fsck_at_boot
from torture.trials.trial.loads import Loads
from torture.trials.trial.recovery import wait_until_idle
from torture.trials.trial.setup import attach, run_script
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_MAKE_DEADLINE_S = 120
_COPY_DEADLINE_S = 300
_SCRIPT_DEADLINE_S = 60
_IMAGE = "/run/image"
_COPY = f"""set -eu
mkdir {_IMAGE}
mount -t squashfs -o ro /dev/disk/by-id/virtio-root {_IMAGE}
cd {_IMAGE}
tar -cf - --exclude=./usr/lib/modules --exclude='./usr/lib/udev/hwdb*' . | tar -xpf - -C {MOUNT_POINT}
modules=usr/lib/modules/$(uname -r)
mkdir -p {MOUNT_POINT}/$modules
cp $modules/modules.* {MOUNT_POINT}/$modules
modinfo -n $(cut -d ' ' -f 1 /proc/modules) | sed -n 's,^/\\(usr/\\)*,usr/,p' |
    xargs cp --parents -t {MOUNT_POINT}
"""
"""All but the modules that no guest here loads, and udev's hardware database: 230 of 370 MB."""
_LET_GO = f"""sync -f {MOUNT_POINT}
cd /
umount {MOUNT_POINT} {_IMAGE}
"""


def install_script(trial: Trial) -> str:
    """Shell: copy the root of the guest's image onto the mounted disk, and write its fstab(5)."""
    words = dict(word.split("=", 1) for word in trial.root_words.split())
    options = words.get("rootflags", "defaults")
    fstab = f"{words['root']} / {words['rootfstype']} {options} 0 1"
    return f"{_COPY}echo '{fstab}' > {MOUNT_POINT}/etc/fstab\n{_LET_GO}"


def moved_onto_disk(trial: Trial, machines: Machines, nas: Machine, client: Machine) -> Machine:
    """The client that will write: the given client, or another that booted from the NAS's disk."""
    if not trial.boots_from_disk:
        return client
    client.must(*trial.filesystem.make, deadline_s=_MAKE_DEADLINE_S)
    client.must(*trial.filesystem.mount, deadline_s=_SCRIPT_DEADLINE_S)
    # else ZFS would write the copy twice: to the intent log, too
    run_script(nas, set_sync_script(Sync.DISABLED), deadline_s=_SCRIPT_DEADLINE_S)
    run_script(client, install_script(trial), deadline_s=_COPY_DEADLINE_S)
    client.kill()
    wait_until_idle(trial.transport, nas)
    sync = set_sync_script(trial.cell[SYNC])
    run_script(nas, sync, deadline_s=_SCRIPT_DEADLINE_S)
    booted = machines.boot_client_from_disk("client", name=client.name)
    attach(trial, booted)
    return booted


_DMESG_DEADLINE_S = 60
_HALT_DEADLINE_S = 120
_SOUND_DEADLINE_S = 30
_VM = "vm"
"""The client that wrote has another name, and so has the client that checks and still runs."""
_HALT = ("sh", "-c", "sync; mount -o remount,ro /")
"""A shutdown's treatment of a root; afterwards its power may go."""


def boots(machines: Machines, evidence: EvidenceWriter, nas: Machine, step: Step) -> bool:
    """Start the VM from its disk, keep its console as evidence of `step`, and end it.

    It came up when its agent answers and runs a command from that disk. Raises `HarnessError` when
    the machinery failed: QEMU refuses or is gone, or the NAS does not answer.
    """
    begun = time.monotonic()
    why = ""
    try:
        machine = machines.boot_client_from_disk(step.value, name=_VM)
    except GuestDied as failure:
        if not failure.kernel_crashed:
            raise
        why = "its kernel gave up"
    except DeadlineExceeded as failure:
        why = failure.message
    else:
        why = _run_and_end(evidence, machine)
    if why:
        nas.must("true", deadline_s=_SOUND_DEADLINE_S)
    took_ms = round((time.monotonic() - begun) * 1000)
    _keep(evidence, step, why, root_words=machines.trial.root_words, took_ms=took_ms)
    wait_until_idle(machines.trial.transport, nas)
    return not why


def _run_and_end(evidence: EvidenceWriter, machine: Machine) -> str:
    """Why a VM with an answering agent is not up; empty where it is up. Ends it either way."""
    try:
        log = evidence.observe(machine, Step.BOOT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
        if log.exit_code != 0:
            return f"its agent answers, and dmesg returns {log.exit_code}"
        evidence.observe(machine, Step.BOOT_HALT, _HALT, deadline_s=_HALT_DEADLINE_S)
    except HarnessError as failure:
        if isinstance(failure, GuestDied) and not failure.kernel_crashed:
            raise
        return f"its agent answered, and then: {failure.message.splitlines()[0]}"
    finally:
        machine.kill()
    return ""


def _keep(evidence: EvidenceWriter, step: Step, why: str, *, root_words: str, took_ms: int) -> None:
    """Keep fsck's output at boot, and the whole console, whether the VM came up or not."""
    console = (evidence.folder / f"{step.value}.console.log").read_text(errors="replace")
    fsck = fsck_at_boot(console)
    if fsck is not None:
        again = step is Step.BOOT_AFTER_REPAIR
        argv = ("fsck", "-a", fsck.device)
        evidence.keep(
            Step.BOOT_FSCK_AFTER_REPAIR if again else Step.BOOT_FSCK,
            Completed(vm=_VM, argv=argv, exit_code=fsck.exit_code, stdout=fsck.said),
        )
    booted = Completed(
        vm=_VM,
        argv=("boot", *root_words.split()),
        exit_code=1 if why else 0,
        stdout=console,
        stderr=why,
        duration_ms=took_ms,
    )
    evidence.keep(step, booted)


def keep_loss_of_root(
    trial: Trial, evidence: EvidenceWriter, loads: Loads, client: Machine, failure: HarnessError
) -> None:
    """Keep as evidence that the client panicked, or runs no command after all its writers failed.

    Raises `failure` in any other case: a client that continues to write has its root, so the
    machinery has failed.
    """
    is_its_own = trial.boots_from_disk and (
        failure.machine is client and failure.kernel_crashed
        if isinstance(failure, GuestDied)
        else loads.are_over
    )
    if not is_its_own:
        raise failure
    try:
        console = client.spec.console_log.read_text(errors="replace")
    except OSError:
        console = ""
    lost = Completed(
        vm=client.name,
        argv=("console",),
        exit_code=1,
        stdout=console,
        stderr=failure.message.splitlines()[0],
    )
    evidence.keep(Step.CLIENT_LOST_ROOT, lost)

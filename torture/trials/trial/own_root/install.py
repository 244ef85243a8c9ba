"""The client's root, put on the NAS's disk, and the client that boots from there."""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.axes import SYNC
from torture.choices.volumes import set_sync_script
from torture.facts.axes.sync import Sync
from torture.machines.lab.machine import Machine
from torture.trials.trial.context import TrialContext
from torture.trials.trial.recovery import wait_until_idle
from torture.trials.trial.setup import attach, run_script

BOOT_DEADLINE_S = 240
"""An operator's patience: emulated, on two cores that others wanted too, it took 30 to 63 s."""
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
"""All but the modules that no guest of ours loads and udev's database of hardware: 230 of 370 MB."""
_LET_GO = f"""sync -f {MOUNT_POINT}
cd /
umount {MOUNT_POINT} {_IMAGE}
"""


def root_words(context: TrialContext) -> str:
    """What tells the client's kernel of its root."""
    return f"root={context.device} {context.filesystem.root_words}"


def install_script(context: TrialContext) -> str:
    """Shell: copy the root of the guest's image onto the mounted disk, and say in fstab(5) what it is."""
    words = dict(word.split("=", 1) for word in root_words(context).split())
    options = words.get("rootflags", "defaults")
    fstab = f"{words['root']} / {words['rootfstype']} {options} 0 1"
    return f"{_COPY}echo '{fstab}' > {MOUNT_POINT}/etc/fstab\n{_LET_GO}"


def moved_onto_disk(context: TrialContext, nas: Machine, client: Machine) -> Machine:
    """The client that will write: the one that was given, or another that booted from the NAS's disk."""
    if not context.boots_from_disk:
        return client
    client.must(*context.filesystem.make(context.device), deadline_s=_MAKE_DEADLINE_S)
    mount = context.filesystem.mount(context.device, MOUNT_POINT)
    client.must(*mount, deadline_s=_SCRIPT_DEADLINE_S)
    # else all that is copied would be written twice, to the log, too
    run_script(nas, set_sync_script(Sync.DISABLED), deadline_s=_SCRIPT_DEADLINE_S)
    run_script(client, install_script(context), deadline_s=_COPY_DEADLINE_S)
    client.kill()
    wait_until_idle(context, nas)
    sync = set_sync_script(context.spec.cell[SYNC])
    run_script(nas, sync, deadline_s=_SCRIPT_DEADLINE_S)
    booted = booted_from_disk(context, "client", name=client.name)
    attach(context, booted)
    return booted


def booted_from_disk(context: TrialContext, role: str, *, name: str) -> Machine:
    """A client of this name that booted from the NAS's disk; `role` names its console log.

    Raises `GuestDied` when its kernel gives up, `DeadlineExceeded` when its agent does not answer.
    """
    machine = context.lab.boot_client(
        name=name,
        console_log=context.folder / f"{role}.console.log",
        ledger_socket=context.ledger_socket(role),
        disks=context.client_disks,
        preload=context.attachment.preload,
        root_words=root_words(context),
        deadline_s=BOOT_DEADLINE_S,
    )
    return context.own(machine)

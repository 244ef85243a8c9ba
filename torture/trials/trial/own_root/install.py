"""The client's root on the NAS's disk, and the client that boots from there."""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.axes import SYNC
from torture.choices.volumes import set_sync_script
from torture.facts.axes.sync import Sync
from torture.machines.lab.machine import Machine
from torture.trials.trial.recovery import wait_until_idle
from torture.trials.trial.setup import attach, run_script
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

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

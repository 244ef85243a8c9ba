"""The ends of a NAS's service that are no loss of power: its kernel's panic, and an orderly reboot.

The reset that follows is the same for the disks as the end of QEMU: what they completed stays. QEMU's own
`system_reset` would wait for each request in flight (`virtio_blk_reset`, hw/block/virtio-blk.c), and no
controller has to.
"""

from __future__ import annotations

from torture.choices.matrix.cells import EVENT
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.facts.axes.event import Event
from torture.machines.lab.machine import Machine
from torture.trials.trial.shared.machines import Trial
from torture.trials.trial.shared.resident import must_not_hang

_CRASH = "echo 0 > /proc/sys/kernel/panic; sleep 0.1; echo c > /proc/sysrq-trigger"
"""Shell: the agent answers first, and the kernel then stands still rather than boot again."""
_PANICKED = "Kernel panic - not syncing: sysrq triggered crash"
"""Linux drivers/tty/sysrq.c, `sysrq_handle_crash`."""
_PANIC_DEADLINE_S = 30
_POLL_S = 0.01
_RELEASE_DEADLINE_S = 60
_UNMOUNT = "zfs unmount -a && sync"
_UNMOUNT_DEADLINE_S = 300


def end_service(trial: Trial, nas: Machine) -> None:
    """Bring about the cell's event, where the NAS's own kernel does so.

    Raises `StorageFailed` where a target or a dataset does not let go, and `HarnessError` where no panic
    is seen.
    """
    match trial.cell[EVENT]:
        case Event.PANIC:
            _panic(nas)
        case Event.REBOOT:
            _shut_down(trial, nas)


def end_target(trial: Trial, nas: Machine) -> None:
    """Make the target let go of its volume; raises `StorageFailed` when it hangs."""
    release = trial.transport.traits.release_script
    must_not_hang(nas, "the target hung at its end", release, deadline_s=_RELEASE_DEADLINE_S)


def _shut_down(trial: Trial, nas: Machine) -> None:
    """End the target, unmount, and write back, as a NAS of Debian's does before it boots again.

    `nfs-server.service` comes `After=local-fs.target`, and `zfs-mount.service` `Before` it, so the server
    ends first (systemd.unit(5)). `zfs-import-cache.service` has no `ExecStop`: the pool is not exported.
    systemd syncs at last (systemd `src/shutdown/shutdown.c`).
    """
    end_target(trial, nas)
    must_not_hang(nas, "the NAS hung as it unmounted", _UNMOUNT, deadline_s=_UNMOUNT_DEADLINE_S)


def _panic(nas: Machine) -> None:
    nas.agent.start(("sh", "-c", _CRASH))
    if not wait_until_true(
        lambda: _PANICKED in nas.console(), deadline_s=_PANIC_DEADLINE_S, poll_s=_POLL_S
    ):
        raise HarnessError(
            f"the NAS's kernel did not panic within {_PANIC_DEADLINE_S} s",
            hint=f"read {nas.spec.console_log}",
        )

"""Where the client's own root filesystem is.

On the NAS's disk it is that of an ordinary virtual machine. Its kernel and initrd come from the host. All
other programs, the guest agent too, run from the disk whose NAS loses power. The load runs on the same
filesystem. After the cut the question is whether the VM boots again, and what fsck reports at boot.
"""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.sweeps import BOOT_SWEEPS, EVERY_SWEEP


class Root(StrEnum):
    """Where the client's root is."""

    IMAGE = "imageroot"
    """On the host, with a temporary overlay; the NAS's disk is an additional one."""
    BOOT = "boot"
    """On the NAS's disk."""


def _unless_a_client_can_boot_from_it(chosen: Chosen) -> str | None:
    transport, filesystem = chosen["transport"], chosen["filesystem"]
    traits = transport.value.traits
    if traits.gives_files or traits.client_has_network or traits.is_local:
        return f"needs a disk of the client's QEMU, and {transport.name!r} has none"
    if filesystem.value.root_words is None:
        return f"needs a filesystem that can be a kernel's root, and {filesystem.name!r} cannot"
    return None


_WORDS = {
    Root.IMAGE: ("client's root is its own", "on the host"),
    Root.BOOT: (
        "client boots from the disk",
        "on the NAS's disk, like the load: does the VM boot again?",
    ),
}

AXIS = Axis(
    field="root",
    noun="Root",
    title="client's root",
    place=75,
    default=Root.IMAGE.value,
    is_setting=True,
    inapplicable=_unless_a_client_can_boot_from_it,
    choices=choices_of(_WORDS, {Root.IMAGE: EVERY_SWEEP - BOOT_SWEEPS, Root.BOOT: BOOT_SWEEPS}),
)

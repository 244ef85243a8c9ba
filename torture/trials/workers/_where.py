"""The place of a worker's trials, as their records have it."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

from torture.machines.host.commands import version_of
from torture.machines.lab.lab import Lab
from torture.records.record.trials import Where

_MODEL = re.compile(r"^model name\s*:\s*(.+?)\s*$", re.MULTILINE)
_DIGITS = 16


def where_of(lab: Lab) -> Where:
    """The host and the machinery of its lab; raises `HarnessError` where QEMU is missing."""
    kernels = lab.kernels
    return Where(
        host=platform.node(),
        accelerator=lab.accelerator,
        processor=processor_model(),
        qemu=_qemu(),
        linux_nas=kernels.nas,
        linux_client=kernels.client,
        images={name: image.sha256[:_DIGITS] for name, image in lab.images.items()},
    )


@cache
def _qemu() -> str:
    return version_of("qemu-system-x86_64", "--version")


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model of this host's processor (proc(5)), of each kind once; empty where none is named."""
    models = _MODEL.findall(cpuinfo.read_text(errors="replace"))
    return ", ".join(dict.fromkeys(models))

"""The place of a worker's trials, and the digest of the code that all its hosts must run."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from pathlib import Path

from torture.files import CHECKOUT
from torture.machines.host.abilities import version_of
from torture.machines.lab.lab import Lab
from torture.records.record.trials import Where

_SUFFIXES = frozenset({".py", ".cpp", ".hpp", ".h", ".c", ".sh", ".toml", ".j2"})


def code_digest(checkout: Path = CHECKOUT) -> str:
    """The SHA-256 of the engine's files, and of the recipes of the images and of ZFS's versions."""
    digest = hashlib.sha256()
    for folder in ("torture", "vmimages"):
        for path in sorted((checkout / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                content = path.read_bytes()
                digest.update(f"{path.relative_to(checkout)} {len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()


LOADED = code_digest()
"""Of the files at the time when this process loaded its code."""


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

"""The accelerator and the network that this host and user can have, and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from torture.errors import DeadlineExceeded, HarnessError

_OUTPUT_MAX = 3000


def run_host(*argv: str, deadline_s: float = 30, hint: str = "") -> str:
    """The output of a command of the host; raises `HarnessError` when it is missing or fails."""
    if shutil.which(argv[0]) is None:
        raise HarnessError(f"{argv[0]} is not installed", hint="tools/run --setup-only")
    try:
        completed = subprocess.run(
            argv, capture_output=True, text=True, timeout=deadline_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineExceeded(
            f"{' '.join(argv)} did not end within {deadline_s:g} s", hint=hint
        ) from error
    if completed.returncode != 0:
        output = (completed.stderr or completed.stdout).strip()[-_OUTPUT_MAX:]
        raise HarnessError(f"{' '.join(argv)} failed: {output}", hint=hint)
    return completed.stdout


def version_of(*argv: str) -> str:
    """The first version that a command prints; raises `HarnessError` as `run_host` does."""
    found = re.search(r"\d+(\.\d+)+", run_host(*argv))
    return found.group() if found else "unknown"


class Accelerator(StrEnum):
    """The emulator of the guests' processors."""

    KVM = "kvm"
    TCG = "tcg"


class NetworkKind(StrEnum):
    """The ways in which the host reaches the NAS."""

    BRIDGE = "bridge"
    USER_MODE = "usermode"


_Kind = TypeVar("_Kind", bound=StrEnum)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ability(Generic[_Kind]):
    """The kind that this host can have, and the reason for it, in words."""

    kind: _Kind
    reason: str


def probe_accelerator(
    *, cpuinfo: Path = Path("/proc/cpuinfo"), kvm: Path = Path("/dev/kvm")
) -> Ability[Accelerator]:
    """KVM where it really works, else TCG.

    `/dev/kvm` may exist and open on a processor without virtualisation. Guests then crawl or stop
    with an emulation error. So the processor's flags are checked first.
    """
    flags = set(cpuinfo.read_text(errors="replace").split())
    if not flags & {"vmx", "svm"}:
        lacks = "the processor shows neither vmx nor svm"
    elif not kvm.exists():
        lacks = f"{kvm} is missing: load kvm_intel or kvm_amd"
    elif not os.access(kvm, os.R_OK | os.W_OK):
        lacks = f"{kvm} is closed to this user: sudo usermod -aG kvm $USER, then log in again"
    else:
        works = f"the processor virtualises and {kvm} opens"
        return Ability(kind=Accelerator.KVM, reason=works)
    return Ability(kind=Accelerator.TCG, reason=lacks)


def choose_accelerator(forced: Accelerator | None) -> Ability[Accelerator]:
    """The forced accelerator, or the probed one; raises `HarnessError` when KVM cannot be forced."""
    probed = probe_accelerator()
    if forced is None:
        return probed
    if forced is Accelerator.KVM and probed.kind is not Accelerator.KVM:
        raise HarnessError(f"--accel kvm cannot work: {probed.reason}", hint="leave --accel out")
    return Ability(kind=forced, reason="set by --accel")


def choose_network(*, tun: Path = Path("/dev/net/tun")) -> Ability[NetworkKind]:
    """A bridge where the user can make taps, else the user-mode stack."""
    if not tun.exists():
        lacks = f"{tun} is missing: sudo modprobe tun"
    elif not os.access(tun, os.R_OK | os.W_OK):
        lacks = f"{tun} is closed to this user: sudo chmod 666 {tun}"
    else:
        return Ability(kind=NetworkKind.BRIDGE, reason=f"{tun} opens")
    return Ability(kind=NetworkKind.USER_MODE, reason=lacks)

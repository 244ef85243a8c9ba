"""The accelerator and the network that this host and user can have, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from torture.errors import HarnessError


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

"""Which network this host and user can have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class NetworkKind(StrEnum):
    """The ways in which the host reaches the NAS."""

    BRIDGE = "bridge"
    USER_MODE = "usermode"


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkChoice:
    """The kind of network and the reason for it, in words."""

    kind: NetworkKind
    reason: str


def choose_network(*, tun: Path = Path("/dev/net/tun")) -> NetworkChoice:
    """A bridge where the user can make taps, else the user-mode stack."""
    if not tun.exists():
        lacks = f"{tun} is missing: sudo modprobe tun"
    elif not os.access(tun, os.R_OK | os.W_OK):
        lacks = f"{tun} is closed to this user: sudo chmod 666 {tun}"
    else:
        return NetworkChoice(kind=NetworkKind.BRIDGE, reason=f"{tun} opens")
    return NetworkChoice(kind=NetworkKind.USER_MODE, reason=lacks)

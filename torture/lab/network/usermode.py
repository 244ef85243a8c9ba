"""QEMU's user-mode stack: needs no tap, so it works where `/dev/net/tun` is closed to the user.

The namespace's loopback is the worker's alone, so the NAS's ports keep their numbers. When the NAS's
QEMU is killed, its connections are reset at once rather than falling silent; what the disks keep is
the same.
"""

from __future__ import annotations

from torture.host.commands import run_host
from torture.host.network_kind import NetworkKind
from torture.lab.domains import UserModeInterface
from torture.lab.network import NAS_ADDRESS, NAS_MAC
from torture.transports import PORTS


class UserModeNetwork:
    """Ports of the namespace's loopback, forwarded into the NAS."""

    kind = NetworkKind.USER_MODE
    nas_host = "127.0.0.1"

    def set_up(self) -> None:
        """Bring the namespace's loopback up."""
        run_host("ip", "link", "set", "lo", "up", hint="tools/doctor")

    def nas_interface(self) -> UserModeInterface:
        """The card behind the user-mode stack."""
        return UserModeInterface(mac=NAS_MAC, guest_address=NAS_ADDRESS, forwarded_ports=PORTS)

"""QEMU's user-mode stack: needs no tap, so it works where `/dev/net/tun` is closed to the user.

The namespace's loopback is the worker's alone, so the NAS's ports keep their numbers. When the
NAS's QEMU is killed, its connections are reset at once rather than falling silent. The content of
the disks is the same.
"""

from __future__ import annotations

from torture.choices.transports import FORWARDED_PORTS
from torture.errors import HarnessError
from torture.machines.host.commands import run_host
from torture.machines.host.network_kind import NetworkKind
from torture.machines.lab.domains import TapInterface, UserModeInterface
from torture.machines.lab.network import NAS_ADDRESS, NAS_MAC

_HINT = "--network bridge; tools/doctor says what it needs"


class UserModeNetwork:
    """Ports of the namespace's loopback, forwarded into the NAS."""

    kind = NetworkKind.USER_MODE
    nas_host = "127.0.0.1"

    def set_up(self) -> None:
        """Bring the namespace's loopback up."""
        run_host("ip", "link", "set", "lo", "up", hint="tools/doctor")

    def nas_interface(self) -> UserModeInterface:
        """The card behind the user-mode stack."""
        return UserModeInterface(
            mac=NAS_MAC, guest_address=NAS_ADDRESS, forwarded_ports=FORWARDED_PORTS
        )

    def client_interface(self, *, is_checker: bool) -> TapInterface:
        """Refuse: there is no wire between two machines."""
        raise HarnessError("a client has no way to the NAS in the user-mode network", hint=_HINT)

    def plug_nas(self, *, is_in: bool) -> None:
        """Refuse: the user-mode stack refuses connections whatever the NAS does."""
        raise HarnessError("the user-mode network has no cable to pull", hint=_HINT)

"""The networks of a worker: a bridge, or QEMU's user-mode stack."""

from __future__ import annotations

from torture.choices.transports import FORWARDED_PORTS
from torture.errors import HarnessError
from torture.machines.host.abilities import NetworkKind
from torture.machines.host.commands import run_host
from torture.machines.lab.domains import TapInterface, UserModeInterface
from torture.machines.lab.network import (
    CHECKER_MAC,
    CLIENT_MAC,
    HOST_MAC,
    NAS_ADDRESS,
    NAS_MAC,
    NAS_PREFIX_BITS,
)

# A bridge and taps: the NAS has an address of its own, with all its ports, and so may clients.
_BRIDGE = "br0"
_NAS_TAP, _CLIENT_TAP, _CHECKER_TAP = "nas0", "client0", "checker0"
_BRIDGE_HINT = "tools/doctor; or try --network usermode"
_HOST_ADDRESS = "10.77.0.1"


class BridgeNetwork:
    """Needs `/dev/net/tun`; a tap stays while the machine behind it comes and goes."""

    kind = NetworkKind.BRIDGE
    nas_host = NAS_ADDRESS

    def set_up(self) -> None:
        """Make bridge and taps, without delays before they forward."""
        taps = [
            line
            for tap in (_NAS_TAP, _CLIENT_TAP, _CHECKER_TAP)
            for line in (
                f"tuntap add dev {tap} mode tap",
                f"link set {tap} master {_BRIDGE}",
                f"link set {tap} up",
            )
        ]
        for line in (
            "link set lo up",
            f"link add {_BRIDGE} address {HOST_MAC} type bridge forward_delay 0 stp_state 0",
            f"addr add {_HOST_ADDRESS}/{NAS_PREFIX_BITS} dev {_BRIDGE}",
            *taps,
            f"link set {_BRIDGE} up",
        ):
            run_host("ip", *line.split(), hint=_BRIDGE_HINT)

    def nas_interface(self) -> TapInterface:
        """The card on the tap."""
        return TapInterface(tap=_NAS_TAP, mac=NAS_MAC)

    def client_interface(self, *, is_checker: bool) -> TapInterface:
        """The card on a tap of its own."""
        if is_checker:
            return TapInterface(tap=_CHECKER_TAP, mac=CHECKER_MAC)
        return TapInterface(tap=_CLIENT_TAP, mac=CLIENT_MAC)

    def plug_nas(self, *, is_in: bool) -> None:
        """Take the NAS's tap out of the bridge, or into it. Outside, no host answers, nor refuses."""
        words = f"master {_BRIDGE}" if is_in else "nomaster"
        run_host("ip", "link", "set", _NAS_TAP, *words.split(), hint=_BRIDGE_HINT)


# QEMU's user-mode stack: needs no tap, so it works where `/dev/net/tun` is closed to the user.
#
# The namespace's loopback is the worker's alone, so the NAS's ports keep their numbers. When the
# NAS's QEMU is killed, its connections are reset at once rather than falling silent. The content
# of the disks is the same.

_BRIDGE_NEEDED = "--network bridge; tools/doctor says what it needs"


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
        raise HarnessError(
            "a client has no way to the NAS in the user-mode network", hint=_BRIDGE_NEEDED
        )

    def plug_nas(self, *, is_in: bool) -> None:
        """Refuse: the user-mode stack refuses connections whatever the NAS does."""
        raise HarnessError("the user-mode network has no cable to pull", hint=_BRIDGE_NEEDED)

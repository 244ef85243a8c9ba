"""A bridge and taps: the NAS has an address of its own, with all its ports, and so may clients."""

from __future__ import annotations

from torture.machines.host.commands import run_host
from torture.machines.host.network_kind import NetworkKind
from torture.machines.lab.domains import TapInterface
from torture.machines.lab.network import (
    CHECKER_MAC,
    CLIENT_MAC,
    HOST_MAC,
    NAS_ADDRESS,
    NAS_MAC,
    NAS_PREFIX_BITS,
)

_BRIDGE = "br0"
_NAS_TAP, _CLIENT_TAP, _CHECKER_TAP = "nas0", "client0", "checker0"
_HINT = "tools/doctor; or try --network usermode"
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
            run_host("ip", *line.split(), hint=_HINT)

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
        run_host("ip", "link", "set", _NAS_TAP, *words.split(), hint=_HINT)
